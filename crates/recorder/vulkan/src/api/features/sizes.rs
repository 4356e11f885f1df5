//! A table of the sizes of the structures that programs may chain to VkDeviceCreateInfo (the description of a new
//! device), so that they can be copied. Most consist of switches: a head, and a VkBool32 for each feature.

use ash::vk;

/// The structures that consist of VkBool32 alone, by how many each has and as its VkStructureType: all that extend
/// VkDeviceCreateInfo in vk.xml of 1.4.366. Drivers and programs know newer structures than ash.
#[rustfmt::skip]
const OF_SWITCHES: &[(usize, &[i32])] = &[
    (1, &[1000044003, 1000050000, 1000063000, 1000066000, 1000067001, 1000068001, 1000102000, 1000108000, 1000110000,
        1000145001, 1000148000, 1000154000, 1000156004, 1000166000, 1000172000, 1000173000, 1000175000, 1000203000, 1000204000,
        1000205002, 1000207000, 1000209000, 1000215000, 1000221000, 1000229000, 1000231000, 1000232000, 1000233000, 1000235000,
        1000238000, 1000240000, 1000241000, 1000248000, 1000250000, 1000252000, 1000253000, 1000261000, 1000265000, 1000267000,
        1000269000, 1000270000, 1000275000, 1000276000, 1000277007, 1000278000, 1000280000, 1000281000, 1000284000, 1000288000,
        1000292000, 1000294001, 1000295000, 1000297000, 1000300000, 1000302001, 1000304000, 1000305000, 1000307003, 1000314007,
        1000318006, 1000320000, 1000321000, 1000323000, 1000325000, 1000330000, 1000332000, 1000335000, 1000338000, 1000339000,
        1000344000, 1000348013, 1000351000, 1000352000, 1000354000, 1000355000, 1000361000, 1000369001, 1000370000, 1000371001,
        1000372001, 1000375000, 1000376000, 1000381000, 1000387000, 1000388000, 1000390000, 1000391000, 1000392000, 1000397000,
        1000412000, 1000413000, 1000417001, 1000418000, 1000420000, 1000421000, 1000422000, 1000424000, 1000425000, 1000426000,
        1000427000, 1000430000, 1000434000, 1000437000, 1000458000, 1000460018, 1000462000, 1000464000, 1000465000, 1000466000,
        1000468000, 1000470000, 1000476000, 1000478000, 1000479002, 1000480001, 1000481000, 1000482000, 1000483000, 1000483008,
        1000484000, 1000485000, 1000488000, 1000490000, 1000492000, 1000495000, 1000497000, 1000498000, 1000499000, 1000504000,
        1000510000, 1000513004, 1000514000, 1000515000, 1000518000, 1000519001, 1000520000, 1000521000, 1000524000, 1000528000,
        1000529004, 1000544000, 1000545000, 1000546000, 1000547000, 1000552004, 1000553009, 1000555000, 1000558000, 1000559000,
        1000562000, 1000563000, 1000564000, 1000568000, 1000569000, 1000570000, 1000574000, 1000575000, 1000580001, 1000581000,
        1000582000, 1000584000, 1000586000, 1000590000, 1000596000, 1000598000, 1000605000, 1000607000, 1000608000, 1000609000,
        1000611000, 1000613001, 1000616000, 1000620000, 1000623000, 1000627000, 1000628000, 1000629000, 1000630000, 1000631000,
        1000635000, 1000637000, 1000642000, 1000645001, 1000657000, 1000662000, 1000668004, 1000670000, 1000674000, 1000676002,
        1000678000, 1000687000, 1000689000, 1000707000, 1000709000, 1000718000]),
    (2, &[1000028000, 1000081001, 1000082000, 1000116000, 1000120000, 1000134000, 1000135009, 1000138000, 1000164001,
        1000180000, 1000181000, 1000190002, 1000201000, 1000202000, 1000225002, 1000234000, 1000249000, 1000254000, 1000287002,
        1000327001, 1000340000, 1000341000, 1000356000, 1000374004, 1000386000, 1000393000, 1000404000, 1000411000, 1000416000,
        1000429008, 1000491000, 1000506000, 1000516000, 1000527000, 1000549000, 1000567000, 1000572000]),
    (3, &[1000053001, 1000141000, 1000177000, 1000208000, 1000211000, 1000218000, 1000226003, 1000244000, 1000251000,
        1000257000, 1000272000, 1000286000, 1000303000, 1000326001, 1000342000, 1000377000, 1000382000, 1000395000, 1000396005,
        1000428000, 1000440000, 1000451000, 1000579000]),
    (4, &[1000083000, 1000133000, 1000283000, 1000316002, 1000336000, 1000373007, 1000489002, 1000573000, 1000672000,
        1000673000]),
    (5, &[1000150013, 1000328000, 1000347000, 1000507006, 1000659000]),
    (6, &[1000259000, 1000460009]),
    (7, &[1000593000]),
    (12, &[49, 1000260000, 1000273000]),
    (14, &[1000309000]),
    (15, &[53, 1000163000]),
    (20, &[1000161001]),
    (21, &[55]),
    (31, &[1000455000]),
    (47, &[51]),
];

/// Returns the size of a structure by its type, or `None` if it is not known.
pub fn size_of_structure(kind: vk::StructureType) -> Option<usize> {
    macro_rules! sizes {
        ($($name:ident => $type:ident,)+) => {
            match kind {
                $(vk::StructureType::$name => Some(size_of::<vk::$type<'static>>()),)+
                // VkLayerDeviceCreateInfo has sType, pNext, function and one pointer.
                kind if kind.as_raw() == 48 => Some(32),
                kind => size_of_switches(kind),
            }
        };
    }
    sizes! {
        PHYSICAL_DEVICE_FEATURES_2 => PhysicalDeviceFeatures2,
        DEVICE_GROUP_DEVICE_CREATE_INFO => DeviceGroupDeviceCreateInfo,
        DEVICE_PRIVATE_DATA_CREATE_INFO => DevicePrivateDataCreateInfo,
        DEVICE_DEVICE_MEMORY_REPORT_CREATE_INFO_EXT => DeviceDeviceMemoryReportCreateInfoEXT,
        DEVICE_MEMORY_OVERALLOCATION_CREATE_INFO_AMD => DeviceMemoryOverallocationCreateInfoAMD,
        DEVICE_DIAGNOSTICS_CONFIG_CREATE_INFO_NV => DeviceDiagnosticsConfigCreateInfoNV,
    }
}

/// Returns the size of a structure of switches, or `None` if it is not in the table.
fn size_of_switches(kind: vk::StructureType) -> Option<usize> {
    let has_it = |(_, kinds): &&(usize, &[i32])| kinds.contains(&kind.as_raw());
    let (switches, _) = OF_SWITCHES.iter().find(has_it)?;
    let bytes = size_of::<vk::BaseInStructure<'static>>() + switches * size_of::<vk::Bool32>();
    Some(bytes.next_multiple_of(align_of::<vk::BaseInStructure<'static>>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vk::TaggedStructure;

    /// Checks the size of one structure against that of its type in ash.
    fn check<T: TaggedStructure>() {
        assert_eq!(
            size_of_structure(T::STRUCTURE_TYPE),
            Some(size_of::<T>()),
            "{:?}",
            T::STRUCTURE_TYPE
        );
    }

    #[test]
    fn sizes_are_those_of_the_structures() {
        check::<vk::PhysicalDeviceFeatures2<'_>>();
        check::<vk::PhysicalDeviceVulkan11Features<'_>>();
        check::<vk::PhysicalDeviceVulkan12Features<'_>>();
        check::<vk::PhysicalDeviceVulkan13Features<'_>>();
        check::<vk::PhysicalDeviceHostQueryResetFeatures<'_>>();
        check::<vk::PhysicalDeviceDescriptorIndexingFeatures<'_>>();
        check::<vk::PhysicalDeviceShaderIntegerDotProductFeatures<'_>>();
        check::<vk::PhysicalDeviceRobustness2FeaturesEXT<'_>>();
        check::<vk::PhysicalDeviceMultiviewFeatures<'_>>();
        check::<vk::PhysicalDeviceExtendedDynamicState3FeaturesEXT<'_>>();
        check::<vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'_>>();
        check::<vk::PhysicalDeviceRayTracingPipelineFeaturesKHR<'_>>();
        // VkPhysicalDeviceVulkan14Features has 21 features.
        assert_eq!(
            size_of_structure(vk::StructureType::from_raw(55)),
            Some(104)
        );
        assert_eq!(size_of_structure(vk::StructureType::from_raw(7)), None);
    }
}
