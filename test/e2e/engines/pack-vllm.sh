#!/bin/bash
# Packs vLLM VERSION for a machine that has its torch, transformers and what these bring, into FOLDER/vllm.tar.gz.1of…:
# pack-vllm.sh VERSION FOLDER. To be carried in pieces of 24 MiB it is made small: machine code of other GPUs than
# Hopper is emptied (thin-fatbin.py), and what a text model in bfloat16 never loads is left out.
set -euo pipefail
version=$1 into=$2 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
platforms=(--platform any)
for of in 2_39 2_35 2_34 2_31 2_28 2_27 2_26 2_24 2_17 2_12; do platforms+=(--platform "manylinux_${of}_x86_64"); done
for of in manylinux2014 manylinux2010 manylinux1 linux; do platforms+=(--platform "${of}_x86_64"); done
# Versions that vLLM 0.24.0 asks for or was made with; nothing here brings its own needs.
python3 -m pip --disable-pip-version-check -q install --no-deps --no-compile --only-binary=:all: --python-version 3.12 \
  --implementation cp --abi cp312 --abi abi3 --abi none "${platforms[@]}" --target "$work/site" "vllm==$version" \
  annotated-types apache-tvm-ffi==0.1.9 astor blake3 cachetools cbor2 compressed-tensors==0.17.0 depyf==0.20.0 dill \
  diskcache==5.6.3 distro 'fastapi>=0.133,<0.137' httptools ijson interegular jiter jmespath 'jsonschema>=4.23' \
  jsonschema-specifications lark==1.2.2 'llguidance>=1.7,<1.8' lm-format-enforcer==0.11.3 loguru 'mistral_common>=1.11.3' \
  'model-hosting-container-standards>=0.1.14,<1' msgspec 'openai>=2,<3' openai-harmony outlines_core==0.2.14 \
  partial-json-parser 'prometheus-fastapi-instrumentator>=8' pybase64 pycountry pydantic==2.14.4 pydantic-core==2.50.5 \
  pydantic-extra-types python-json-logger python-multipart pyzmq referencing rpds-py setproctitle sniffio starlette \
  supervisor typing-inspection uvicorn watchfiles xgrammar==0.2.1
cd "$work/site"
rm -rf vllm/vllm-rs vllm/benchmarks vllm/third_party/fmha_sm100/cutlass vllm/third_party/deep_gemm/include \
  vllm/third_party/deep_gemm/_C.cpython-31[0134]* vllm/vllm_flash_attn/_vllm_fa2_C* mistral_common/data/* pycountry/locales \
  xgrammar/lib/*.a
find . -name '*.so' -size +2M ! -path './vllm/*' -exec strip --strip-unneeded {} +
find . \( -name '*.jpg' -o -name __pycache__ \) -prune -exec rm -rf {} +
python3 "$here/thin-fatbin.py" 90 vllm/_C_stable_libtorch.abi3.so vllm/_moe_C_stable_libtorch.abi3.so
cd - >/dev/null
mkdir -p "$into"
rm -f "$into"/vllm.tar.gz.*
tar -C "$work/site" -cz . | split -b 24M --numeric-suffixes=1 -a 1 - "$work/vllm.tar.gz."
pieces=("$work"/vllm.tar.gz.*)
for piece in "${pieces[@]}"; do mv "$piece" "$into/$(basename "$piece")of${#pieces[@]}"; done
du -sh "$into"
