#!/usr/bin/env bash
# The README's first run, on a smaller lattice, by Python for ARM on an emulated processor and by this machine's: the
# files of both must be the same. Nothing is installed: Debian's Python for ARM and the wheels are unpacked in a folder
# (150 MB). This needs Debian 12, its packages g++-aarch64-linux-gnu and qemu-user, pip, and the network.
#
# usage: tests/qemu/first_run.sh FOLDER [BITS]
#
# FOLDER must not exist, or be that of an earlier call. BITS is the length of vectors of SVE, 256 if it is not given.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:?names no folder} bits=${2:-256}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root site=$folder/site
packages=(python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libexpat1 zlib1g libffi8 libssl3
    libgcc-s1 libstdc++6 liblzma5 libbz2-1.0 libsqlite3-0 libuuid1)

if [ ! -d "$root" ]; then
    mkdir -p "$folder"/apt/{lists,cache} "$folder/debs"
    apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
        -o "Dir::State::lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache")
    "${apt[@]}" update
    (cd "$folder/debs" && "${apt[@]}" download "${packages[@]/%/:arm64}")
    for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$root.new"; done
    mv "$root.new" "$root"
fi

requirements() {
    python3 -c 'import sys, tomllib
print(*tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"], sep="\n")' "$checkout/pyproject.toml"
}
rm -rf "$site"
requirements >"$folder/requirements.txt"
python3 -m pip install --quiet --target "$site" --only-binary=:all: --python-version 3.11 --implementation cp \
    --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 --requirement "$folder/requirements.txt"
python3 -m pip install --quiet --target "$site" --no-deps "$checkout"

# The compiler of the emulated machine is a cross compiler of this one. QEMU shows it a description of this processor,
# unless the folder of libraries has another one.
mkdir -p "$folder/bin" "$root/proc"
cat >"$folder/bin/c++" <<'END'
#!/bin/sh
for option; do
    shift
    [ "$option" != -mcpu=native ] || option=-march=armv8.2-a+sve
    set -- "$@" "$option"
done
exec aarch64-linux-gnu-g++ "$@"
END
chmod +x "$folder/bin/c++"
printf '%s\t: %s\n' processor 0 Features "fp asimd sve" "CPU implementer" 0x00 "CPU part" 0x000 >"$root/proc/cpuinfo"

emulated() {
    PATH="$folder/bin:$PATH" PYTHONPATH="$site" GAUGE_MC_CACHE="$folder/kernels" \
        qemu-aarch64 -cpu "max,sve-max-vq=$((bits / 128))" -L "$root" "$root/usr/bin/python3.11" -m gauge_mc "$@"
}
native() {
    "${GAUGE_MC:-gauge-mc}" "$@"
}

rm -rf "$folder"/runs
mkdir "$folder/runs" && cd "$folder/runs"
emulated doctor | grep -E "processor|C\+\+|CPU:|energy"
for machine in emulated native; do
    "$machine" generate --beta 2.5 --lattice 8x8x8x8 --thermalize 10 --configs 3 --separation 5 --strict --backend cpu \
        --output "$machine" --quiet
    "$machine" verify "$machine"
done
emulated status emulated
for file in emulated/*.csv; do
    diff <(grep -v "^#" "$file") <(grep -v "^#" "${file/emulated/native}")
done
for file in emulated/configs/*.lime; do
    cmp "$file" "${file/emulated/native}"
done
echo "The tables and configurations of both runs are the same."
