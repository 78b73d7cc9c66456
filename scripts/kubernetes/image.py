"""Makes an OCI archive that holds one program and its libraries: image.py NAME VERSION PROGRAM OUT [ARG...].

For scripts/fleet-kubernetes: images without a registry and without container tools. The image of
plimsoll itself is that of scripts/dist. Its form is in scripts/pack.py.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import pack  # noqa: E402


def main(name: str, version: str, program: str, out: str, *args: str) -> None:
    source = pathlib.Path(program)
    target = f"usr/bin/{source.name}"
    files = {target: source.read_bytes()}
    # A program that is linked statically has no libraries.
    if subprocess.run(["ldd", source], capture_output=True).returncode == 0:
        files |= {str(path).lstrip("/"): path.read_bytes() for path in pack.libraries(source)}
    folders = {str(parent) for path in files for parent in pathlib.PurePath(path).parents} - {"."}
    entries: list = [(folder, None, 0o755, 0) for folder in sorted(folders)]
    entries += [(path, content, 0o755, 0) for path, content in sorted(files.items())]
    settings = {"User": "65532", "Entrypoint": [f"/{target}", *args], "Labels": {}}
    pathlib.Path(out).write_bytes(pack.oci_archive(name, version, entries, settings))


if __name__ == "__main__":
    main(*sys.argv[1:])
