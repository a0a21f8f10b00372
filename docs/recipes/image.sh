#!/bin/sh
# Install gauge-mc into an image of Debian, with a C++ compiler and the kernels of common runs; see Containerfile and
# gauge-mc.def: image.sh WHEEL [EXTRAS].
set -eu
wheel=$1 extras=${2-}
packages="g++ python3" temporary=python3-venv

export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends $packages $temporary
python3 -m venv /opt/gauge-mc
/opt/gauge-mc/bin/pip install --no-cache-dir "$wheel${extras:+[$extras]}"
/opt/gauge-mc/bin/pip uninstall --yes pip

# What only tests, C, link-time optimisation and sanitizers need.
find /opt/gauge-mc -path "*/numpy/*/tests" -prune -exec rm -r {} +
rm -rf /usr/libexec/gcc/*/*/cc1 /usr/libexec/gcc/*/*/lto1 /usr/lib/*/lib*san.so* /usr/lib/gcc/*/*/lib*san*.a
apt-get purge --yes --autoremove $temporary
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/*.log

# For processors with AVX2 and with AVX-512, if this one has them; start.sh chooses. Nobody but its owner may write to
# a folder of kernels, so that start.sh gives each user a copy of this one.
export PATH=/opt/gauge-mc/bin:$PATH GAUGE_MC_CACHE=/opt/gauge-mc/kernels
mkdir -p $GAUGE_MC_CACHE
work=$(mktemp -d)
for processor in x86-64-v3 x86-64-v4; do
    export CXX="g++ -march=$processor"
    gauge-mc doctor >"$work/doctor" || continue
    for group in su2 su3; do
        for precision in single double; do
            run=$work/$processor.$group.$precision
            gauge-mc generate --group $group --precision $precision --lattice 4x4x4x8 --thermalize 1 --configs 1 \
                --separation 1 --measure +wilson-loops --output "$run"
            gauge-mc measure flow "$run"
        done
    done
done
rm -rf "$work" $GAUGE_MC_CACHE/*.lock $GAUGE_MC_CACHE/plan-*.json
chmod -R a+rX $GAUGE_MC_CACHE
