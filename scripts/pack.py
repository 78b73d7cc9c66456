"""Packs the staged tree of scripts/dist: as a wheel, and as a container image (an OCI archive) made from nothing else.

Needs Python's own modules only, no root, and no container tools. The same tree makes the same bytes.
Usage: pack.py wheel|image TREE VERSION GLIBC OUT
"""

import base64
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
import zipfile

REPOSITORY = "https://github.com/plimsoll/plimsoll"
SUMMARY = "Finds the load line of an HTTP API"


def epoch() -> int:
    # The oldest time that a zip file knows.
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(tree: pathlib.Path, version: str, glibc: str, out: pathlib.Path) -> None:
    """A wheel whose scripts folder holds the binary: pip puts it onto the PATH."""
    tag = f"py3-none-manylinux_{glibc.replace('.', '_')}_x86_64"
    info, data = f"plimsoll-{version}.dist-info", f"plimsoll-{version}.data"
    metadata = "\n".join([
        "Metadata-Version: 2.4",
        "Name: plimsoll",
        f"Version: {version}",
        f"Summary: {SUMMARY}",
        f"Project-URL: Repository, {REPOSITORY}",
        "License-Expression: MIT OR Apache-2.0",
        "License-File: LICENSE-APACHE",
        "License-File: LICENSE-MIT",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown",
        "",
        (tree / "README.md").read_text(),
    ])
    described = f"Wheel-Version: 1.0\nGenerator: plimsoll-dist\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = [(f"{data}/scripts/plimsoll", (tree / "plimsoll").read_bytes(), 0o755)]
    share = f"{data}/data/share"
    for page in sorted((tree / "man/man1").iterdir()):
        files.append((f"{share}/man/man1/{page.name}", page.read_bytes(), 0o644))
    for source, place in [
        ("plimsoll.bash", "bash-completion/completions/plimsoll"),
        ("_plimsoll", "zsh/site-functions/_plimsoll"),
        ("plimsoll.fish", "fish/vendor_completions.d/plimsoll.fish"),
    ]:
        files.append((f"{share}/{place}", (tree / "completions" / source).read_bytes(), 0o644))
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"]:
        files.append((f"{info}/licenses/{licence}", (tree / licence).read_bytes(), 0o644))
    files.append((f"{info}/METADATA", metadata.encode(), 0o644))
    files.append((f"{info}/WHEEL", described.encode(), 0o644))
    record = []
    for name, content, _ in files:
        shown = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={shown},{len(content)}\n")
    record.append(f"{info}/RECORD,,\n")
    files.append((f"{info}/RECORD", "".join(record).encode(), 0o644))
    with zipfile.ZipFile(out / f"plimsoll-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, time.gmtime(epoch())[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content)


def libraries(binary: pathlib.Path) -> list[pathlib.Path]:
    """The shared libraries that the binary is loaded with, and the loader: the image has nothing else."""
    listed = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    words = (word for line in listed.splitlines() for word in line.split())
    found = {pathlib.Path(word) for word in words if word.startswith("/")}
    # What the binary loads when it looks up names of hosts.
    folder = next(path.parent for path in found if path.name == "libc.so.6")
    found |= {folder / name for name in ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"]}
    return sorted(path for path in found if path.exists())


def layer(entries: list[tuple[str, bytes | None, int, int]]) -> bytes:
    """A tar archive of files (name, content, mode, owner); without content: a folder."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content, mode, owner in entries:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime, entry.uid, entry.gid = mode, epoch(), owner, owner
            if content is None:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return held.getvalue()


def image(tree: pathlib.Path, version: str, _glibc: str, out: pathlib.Path) -> None:
    """An image from scratch whose user is not root: the binary, its libraries, the issuers of certificates."""
    user = 65532
    folders, files = set(), []

    def add(name: str, content: bytes, mode: int = 0o644) -> None:
        parts = name.split("/")[:-1]
        folders.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
        files.append((name, content, mode, 0))

    add("usr/bin/plimsoll", (tree / "plimsoll").read_bytes(), 0o755)
    for library in libraries(tree / "plimsoll"):
        add(str(library).lstrip("/"), library.read_bytes(), 0o755)
    issuers = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    if issuers.exists():
        add("etc/ssl/certs/ca-certificates.crt", issuers.read_bytes())
    add("etc/passwd", f"plimsoll:x:{user}:{user}::/work:/nonexistent\n".encode())
    add("etc/group", f"plimsoll:x:{user}:\n".encode())
    add("etc/nsswitch.conf", b"hosts: files dns\n")
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"]:
        add(f"usr/share/doc/plimsoll/{licence}", (tree / licence).read_bytes())
    entries = [(name, None, 0o755, 0) for name in sorted(folders)]
    entries += [("tmp", None, 0o1777, 0), ("work", None, 0o755, user), *sorted(files)]
    labels = {
        "org.opencontainers.image.title": "plimsoll",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.source": REPOSITORY,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    }
    settings = {
        "User": f"{user}:{user}",
        "Env": ["PATH=/usr/bin"],
        "Entrypoint": ["/usr/bin/plimsoll"],
        "WorkingDir": "/work",
        "Labels": labels,
    }
    archive = oci_archive("plimsoll", version, entries, settings)
    (out / f"plimsoll-{version}-x86_64-linux-oci.tar").write_bytes(archive)


def oci_archive(name: str, version: str, entries: list[tuple[str, bytes | None, int, int]], settings: dict) -> bytes:
    """An OCI archive of one layer, which `docker load` and `ctr images import` read. `settings`: how it is started."""
    labels = settings["Labels"]
    plain = layer(entries)
    packed = gzip.compress(plain, 9, mtime=0)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch()))
    config = json.dumps({
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(plain)}"]},
        "history": [{"created": created, "created_by": "scripts/dist"}],
    }).encode()

    def described(kind: str, content: bytes, **more: object) -> dict:
        kind = f"application/vnd.oci.image.{kind}"
        return {"mediaType": kind, "digest": f"sha256:{digest(content)}", "size": len(content), **more}

    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("config.v1+json", config),
        "layers": [described("layer.v1.tar+gzip", packed)],
        "annotations": labels,
    }).encode()
    # With a registry: containerd keeps a name as it is, and kubelet does not find one without.
    named = {"org.opencontainers.image.ref.name": version, "io.containerd.image.name": f"localhost/{name}:{version}"}
    platform = {"architecture": "amd64", "os": "linux"}
    index = json.dumps({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described("manifest.v1+json", manifest, platform=platform, annotations=named)],
    }).encode()
    # What `docker load` reads where it does not know OCI archives.
    older = json.dumps([{
        "Config": f"blobs/sha256/{digest(config)}",
        "RepoTags": [f"{name}:{version}"],
        "Layers": [f"blobs/sha256/{digest(packed)}"],
    }]).encode()
    blobs = [(f"blobs/sha256/{digest(blob)}", blob, 0o644, 0) for blob in [config, packed, manifest]]
    return layer([
        ("oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode(), 0o644, 0),
        ("index.json", index, 0o644, 0),
        ("manifest.json", older, 0o644, 0),
        ("blobs", None, 0o755, 0),
        ("blobs/sha256", None, 0o755, 0),
        *blobs,
    ])


if __name__ == "__main__":
    kind, tree, version, glibc, out = sys.argv[1:]
    {"wheel": wheel, "image": image}[kind](pathlib.Path(tree), version, glibc, pathlib.Path(out))
