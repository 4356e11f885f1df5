//! Tests of the driver itself.

// Each pointer is a variable or a text of the test.
#![allow(clippy::undocumented_unsafe_blocks)]

use super::address_space::BLOCK;
use super::entry_points::*;
use super::function_calls::*;
use super::launch_calls::*;
use super::memory::*;
use super::modules::*;
use super::transfers::*;
use super::virtual_memory::*;
use super::*;
use crate::cubin::Cubin;

fn begin() {
    assert_eq!(cuInit(0), SUCCESS);
    let context = made(|context| unsafe { cuDevicePrimaryCtxRetain(context, 0) });
    assert_eq!(cuCtxSetCurrent(context), SUCCESS);
}

fn made<T: Default>(make: impl FnOnce(*mut T) -> c_int) -> T {
    let mut value = T::default();
    assert_eq!(make(&mut value), SUCCESS);
    value
}

fn attribute<T: Default>(attribute: u32, address: u64) -> T {
    made(|value: *mut T| unsafe { cuPointerGetAttribute(value.cast(), attribute, address) })
}

fn library() -> usize {
    let image = (Cubin::new().kernel("first", "scale"))
        .kernel("second", "nothing that is known")
        .global("counter", &7u32.to_le_bytes())
        .build();
    let image = image.as_ptr().cast();
    made(|library| unsafe { cuLibraryLoadData(library, image, 0, 0, 0, 0, 0, 0) })
}

#[test]
fn wished_addresses_are_given_at_32_mib_and_hold_bytes_while_memory_is_mapped() {
    const WISH: u64 = 0x7a00_0000_0000;
    begin();
    let (block, size) = (BLOCK as usize, 4 * BLOCK as usize);
    let at = |wish| made(|address| unsafe { cuMemAddressReserve(address, size, 0, wish, 0) });
    assert_eq!(at(WISH), WISH);
    assert_ne!(at(WISH), WISH, "the addresses are taken");
    assert_eq!(
        at(WISH + (64 << 20) + BLOCK),
        WISH + (96 << 20),
        "rounded up"
    );
    assert_ne!(at(0x2_0000_0000), 0x2_0000_0000, "nothing is given below");
    let handle = made(|handle| unsafe { cuMemCreate(handle, block, std::ptr::null(), 0) });
    assert_eq!(cuMemMap(WISH + BLOCK, block, 0, handle, 0), SUCCESS);
    assert_eq!(cuMemMap(WISH + BLOCK, block, 0, handle, 0), INVALID_VALUE);
    assert_eq!(cuMemRelease(handle), SUCCESS);
    let (word, mut found) = (5u64, 0u64);
    let write = || cuMemcpyHtoD_v2(WISH + BLOCK + 64, (&raw const word) as u64, 8);
    assert_eq!(write(), INVALID_VALUE, "access is not set");
    assert_eq!(cuMemSetAccess(WISH, size, std::ptr::null(), 1), SUCCESS);
    assert_eq!(write(), SUCCESS);
    let read = cuMemcpyDtoH_v2((&raw mut found) as u64, WISH + BLOCK + 64, 8);
    assert_eq!((read, found), (SUCCESS, 5));
    assert_eq!(cuMemAddressFree(WISH, size), INVALID_VALUE, "it is in use");
    assert_eq!(cuMemUnmap(WISH + BLOCK, block), SUCCESS);
    assert_eq!(write(), INVALID_VALUE);
    assert_eq!(cuMemAddressFree(WISH, size), SUCCESS);
}

#[test]
fn the_driver_knows_of_each_address_what_is_there() {
    begin();
    let allocate = |bytes| made(|address| unsafe { cuMemAlloc_v2(address, bytes) });
    let (first, second): (u64, u64) = (allocate(100), allocate(4000));
    assert_eq!(second - first, 512, "small allocations share a block");
    assert_eq!(attribute::<u32>(2, second + 8), 2);
    assert_eq!(attribute::<u64>(11, second + 8), second);
    assert_eq!(attribute::<usize>(12, second + 8), 4000);
    assert_eq!(attribute::<u8>(8, second), 0);
    let managed = made(|address| unsafe { cuMemAllocManaged(address, 64, 1) });
    assert_eq!(attribute::<u8>(8, managed), 1);
    let pinned: u64 = made(|address| unsafe { cuMemAllocHost_v2(address, 64) });
    assert_eq!(attribute::<u32>(2, pinned), 1);
    let (mut base, mut bytes) = (0, 0);
    let mut range = |address| unsafe { cuMemGetAddressRange_v2(&mut base, &mut bytes, address) };
    assert_eq!(range(first + 99), SUCCESS);
    assert_eq!(range(first + 100), NOT_FOUND, "the gap is no memory");
    assert_eq!((base, bytes), (first, 100));
    assert_eq!(cuMemFree_v2(pinned), INVALID_VALUE);
    assert_eq!(cuMemFreeHost(pinned), SUCCESS);
}

#[test]
fn handles_of_kernels_and_functions_are_told_apart() {
    begin();
    let library = library();
    let kernel = made(|kernel| unsafe { cuLibraryGetKernel(kernel, library, c"first".as_ptr()) });
    let function = made(|function| unsafe { cuKernelGetFunction(function, kernel) });
    let mut name = 0;
    unsafe {
        assert_eq!(cuFuncGetName(&mut name, kernel), INVALID_HANDLE);
        assert_eq!(cuKernelGetName(&mut name, function), INVALID_HANDLE);
        assert_eq!(cuKernelGetFunction(&mut name, function), INVALID_HANDLE);
        assert_eq!(cuFuncGetName(&mut name, function), SUCCESS);
        let found = std::ffi::CStr::from_ptr(name as *const _);
        assert_eq!(found, c"first");
    }
    let module = made(|module| unsafe { cuFuncGetModule(module, function) });
    let again = made(|module| unsafe { cuLibraryGetModule(module, library) });
    assert_eq!(module, again);
    let layout = |kernel, index| {
        let (mut offset, mut size) = (0, 0);
        let code = unsafe { cuKernelGetParamInfo(kernel, index, &mut offset, &mut size) };
        (code == SUCCESS).then_some((offset, size))
    };
    let all: Vec<_> = (0..).map_while(|index| layout(kernel, index)).collect();
    assert_eq!(all, [(0, 8), (8, 8), (16, 4), (20, 4)]);
    let second = made(|kernel| unsafe { cuLibraryGetKernel(kernel, library, c"second".as_ptr()) });
    assert_eq!(
        layout(second, 0),
        None,
        "an unknown kernel has no parameters"
    );
    let mut counter = 0u32;
    let at = made(|at| unsafe {
        cuModuleGetGlobal_v2(at, std::ptr::null_mut(), module, c"counter".as_ptr())
    });
    assert_eq!(cuMemcpyDtoH_v2((&raw mut counter) as u64, at, 4), SUCCESS);
    assert_eq!(counter, 7);
}

#[test]
fn what_a_launch_may_not_ask_for_is_refused() {
    begin();
    let library = library();
    let kernel = made(|kernel| unsafe { cuLibraryGetKernel(kernel, library, c"second".as_ptr()) });
    let function = made(|function| unsafe { cuKernelGetFunction(function, kernel) });
    let launch = |blocks, shared| {
        let none = std::ptr::null_mut();
        cuLaunchKernel(function, blocks, 1, 1, 1, 1, 1, shared, 0, none, 0)
    };
    assert_eq!(launch(1, 48 << 10), SUCCESS);
    assert_eq!(launch(0, 0), INVALID_VALUE);
    assert_eq!(launch(1, 64 << 10), INVALID_VALUE);
    assert_eq!(cuFuncSetAttribute(function, 8, 64 << 10), SUCCESS);
    assert_eq!(launch(1, 64 << 10), SUCCESS);
}
