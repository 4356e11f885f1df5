#!/usr/bin/env python3
"""Writes a macOS SDK of text stubs (tbd v4) that is good for linking and nothing else. No file of Apple's is used.

usage: stubs.py OUT_DIR --manifest-path Cargo.toml --libsystem libSystem.tbd
The symbols are those of the extern blocks of the objc2-* crates that the manifest resolves to, by each crate's own
#[link(name, kind)]; a symbol that they do not declare stays undefined, and the linker says so.
"""
import argparse, json, os, pathlib, re, subprocess, sys, collections

ap = argparse.ArgumentParser()
ap.add_argument("out", type=pathlib.Path)
ap.add_argument("--manifest-path", default="Cargo.toml")
ap.add_argument("--libsystem", type=pathlib.Path)
a = ap.parse_args()

meta = json.loads(subprocess.check_output(
    ["cargo", "metadata", "--format-version", "1", "--filter-platform", "aarch64-apple-darwin",
     "--manifest-path", a.manifest_path]))

EXT = re.compile(r'(?:unsafe\s+)?extern(?:\s+"C(?:-unwind)?")\s*\{|extern_c(?:_unwind)?!\s*[\{\(]')
SYM = re.compile(r'\b(?:fn|static(?:\s+mut)?)\s+([A-Za-z_]\w*)\s*[\(:<]')
LINKNAME = re.compile(r'#\[link_name\s*=\s*"([^"]+)"\]')
LINK = re.compile(r'link\(name\s*=\s*"(\w+)"(?:,\s*kind\s*=\s*"(\w+)")?')

def blocks(t):
    for m in EXT.finditer(t):
        i, d = m.end(), 1
        while d and i < len(t):
            d += (t[i] in "{(") - (t[i] in "})"); i += 1
        yield t[m.end():i]

libs = collections.defaultdict(set)          # (kind, name) -> symbols
for p in meta["packages"]:
    n = p["name"]
    if not (n.startswith("objc2") or n in ("block2", "dispatch2", "libc", "raw-window-metal", "metal")):
        continue
    src = pathlib.Path(p["manifest_path"]).parent / "src"
    syms, links = set(), set()
    for f in src.rglob("*.rs"):
        t = re.sub(r"//[^\n]*", "", f.read_text(errors="replace"))
        links |= {(k or "dylib", nm) for nm, k in LINK.findall(t)}
        if n == "libc":
            continue
        for b in blocks(t):
            syms |= set(SYM.findall(b)) | set(LINKNAME.findall(b))
    if n == "libc":
        continue
    if n == "objc2":
        key = ("dylib", "objc")
    elif n in ("block2", "dispatch2"):
        key = ("dylib", "System")
    elif n.startswith("objc2-"):
        fw = [l for l in links if l[0] == "framework"]
        key = fw[0] if len(fw) == 1 else ("framework", "".join(w.capitalize() for w in n[6:].split("-")))
    else:
        continue
    libs[key] |= syms
    for l in links:
        if l[0] == "framework":
            libs[l] |= set()
for fw in ("Foundation", "Metal", "CoreFoundation", "CoreGraphics", "QuartzCore"):
    libs[("framework", fw)] |= set()
# called by the compiler, not named in any crate
libs[("dylib", "objc")] |= {"_objc_empty_cache", "objc_msgSend", "objc_msgSendSuper", "objc_msgSend_stret"}
libs[("framework", "CoreFoundation")] |= {"__CFConstantStringClassReference"}

TARGETS = "[ arm64-macos, x86_64-macos ]"
def tbd(path, install, syms):
    path.parent.mkdir(parents=True, exist_ok=True)
    s = f"--- !tapi-tbd\ntbd-version:     4\ntargets:         {TARGETS}\ninstall-name:    '{install}'\ncurrent-version: 1\n"
    if syms:
        s += f"exports:\n  - targets:         {TARGETS}\n    symbols:         [ " + \
             ",\n                       ".join(f"'_{x}'" for x in sorted(syms)) + " ]\n"
    path.write_text(s + "...\n")

lib = a.out / "usr/lib"
lib.mkdir(parents=True, exist_ok=True)
for (kind, name), syms in sorted(libs.items()):
    if kind == "framework":
        tbd(a.out / f"System/Library/Frameworks/{name}.framework/{name}.tbd",
            f"/System/Library/Frameworks/{name}.framework/Versions/A/{name}", syms)
    elif name == "System":
        continue
    else:
        tbd(lib / f"lib{name}.tbd", f"/usr/lib/lib{name}.A.dylib", syms)
    print(f"{kind:9} {name:16} {len(syms)} symbols", file=sys.stderr)
tbd(lib / "libiconv.tbd", "/usr/lib/libiconv.2.dylib", {"iconv", "iconv_open", "iconv_close"})
if a.libsystem:
    (lib / "libSystem.tbd").write_bytes(a.libsystem.read_bytes())
for x in ("c", "m", "pthread", "dl"):
    p = lib / f"lib{x}.tbd"
    if p.is_symlink() or p.exists(): p.unlink()
    p.symlink_to("libSystem.tbd")
(a.out / "SDKSettings.json").write_text(json.dumps({
    "CanonicalName": "macosx11.0", "Version": "11.0", "MaximumDeploymentTarget": "26.99",
    "DisplayName": "stub", "DefaultDeploymentTarget": "11.0"}))
