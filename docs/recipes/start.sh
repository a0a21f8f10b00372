#!/bin/sh
# Start gauge-mc in an image. Nobody but its owner may write to a folder of kernels, so that each user gets a copy of
# those of the image. `start.sh --compile` makes them when the image is built.
set -eu
compiled=/opt/gauge-mc/kernels

if [ "${1-}" = --compile ]; then
    work=$(mktemp -d)
    export GAUGE_MC_CACHE=$compiled
    gauge-mc doctor
    for group in su2 su3; do
        for precision in single double; do
            gauge-mc generate --group $group --precision $precision --lattice 4x4x4x8 --thermalize 1 --configs 1 \
                --separation 1 --measure +wilson-loops --output "$work/$group.$precision"
            gauge-mc measure flow "$work/$group.$precision"
        done
    done
    rm -rf "$work" "$compiled"/*.lock "$compiled"/plan-*.json
    chmod -R a+rX "$compiled"
    exit
fi

kernels=${GAUGE_MC_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/gauge-mc/kernels}
mkdir -p "$kernels" 2>/dev/null && [ -w "$kernels" ] || kernels=$(mktemp -d)
cp --no-clobber "$compiled"/* "$kernels"
GAUGE_MC_CACHE=$kernels exec gauge-mc "$@"
