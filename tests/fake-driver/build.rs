fn main() {
    // The loader unloads a driver with its last instance; a queue thread of a program that leaks its device still runs.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
