"""Lists the commands of vk.xml that a device, a queue or a command buffer is given, one a line: name, aliases, tasks,
where in relation to render passes, parameters after the first as their binary interface has them.

    python3 run.py [vk.xml] > crates/recorder/vulkan-layer/registry/commands.tsv

Without a path it reads the vk.xml of the Python package vulkan-object.
"""

import importlib.util
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def registry() -> Path:
    if len(sys.argv) > 1:
        return Path(sys.argv[1])
    # Found without running the package, which needs others.
    package = importlib.util.find_spec("vulkan_object")
    return Path(package.submodule_search_locations[0]) / "vk.xml"


def is_vulkan(element) -> bool:
    return "vulkan" in element.get("api", "vulkan").split(",")


root = ElementTree.parse(registry()).getroot()
types = {}
for element in root.find("types"):
    name = element.get("name") or element.findtext("name")
    if name and is_vulkan(element):
        types[name] = element
wide = {element.get("name") for element in root.findall("enums") if element.get("bitwidth") == "64"}


def interface(name: str) -> str:
    """The type that has the size and the class of a parameter that is no pointer."""
    simple = {"int": "i32", "int32_t": "i32", "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64"}
    simple |= {"size_t": "usize", "float": "f32"}
    if name in simple:
        return simple[name]
    element = types[name]
    if alias := element.get("alias"):
        return interface(alias)
    match element.get("category"):
        case "handle":
            return "u64" if "NON_DISPATCHABLE" in element.findtext("type") else "Pointer"
        case "enum":
            if name in wide:
                return "u64"
            return "u32" if "FlagBits" in name else "i32"
        case "bitmask":
            return "u64" if element.findtext("type") == "VkFlags64" else "u32"
        case "basetype":
            return interface(element.findtext("type"))
    # A type of a window system or the like.
    return name


def parameter(element) -> str:
    text = "".join(element.itertext())
    return "Pointer" if "*" in text or "[" in text else interface(element.findtext("type"))


aliases = {}
commands = {}
for command in root.find("commands"):
    if alias := command.get("alias"):
        aliases.setdefault(alias, []).append(command.get("name"))
    elif is_vulkan(command):
        commands[command.findtext("proto/name")] = command

version = next(
    element.find("name").tail.strip()
    for element in root.find("types")
    if element.findtext("name") == "VK_HEADER_VERSION"
)
print(f"# From vk.xml of Vulkan's headers, version {version}: Copyright The Khronos Group Inc., Apache-2.0 OR MIT.")
print("# UPDATE=1 cargo test -p end-to-end registry writes this file.")
print("# command\taliases\ttasks\trender pass\tparameters")
for name, command in sorted(commands.items()):
    parameters = [p for p in command.findall("param") if is_vulkan(p)]
    if not parameters or parameters[0].findtext("type") not in ("VkDevice", "VkQueue", "VkCommandBuffer"):
        continue
    interfaces = [parameter(p) for p in parameters[1:]]
    columns = [
        name,
        " ".join(sorted(aliases.get(name, []))),
        command.get("tasks", ""),
        command.get("renderpass", ""),
        " ".join(interfaces),
    ]
    print("\t".join(columns))
