#!/usr/bin/env bash
# Times kernels, trajectories, solvers, a scan and measurements on 1, 2, 4 ... devices of one host, and compares
# the bytes of what they write.
#
#     runs/bench/scaling.sh FOLDER [devices=1,2,4] [SECONDS] [PATTERN]
#
# FOLDER gets a JSON file and a figure of every benchmark whose name has the pattern, and the table `commands.txt`.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd) over=${2:-devices=1,2,4} seconds=${3:-1} pattern=${4:-.}
cards=$(cd "$(dirname "$0")/../hmc" && pwd)
IFS=, read -ra counts <<<"${over#*=}"
cd "$folder"

rates() { # name of the files, arguments of bench
    [[ $1 =~ $pattern ]] || return 0
    echo "== $1"
    gauge-mc bench "${@:2}" --over "$over" --seconds "$seconds" --save "$1.json" --plot "$1.svg"
}

sweeps=(heatbath overrelaxation)
rates sweeps_su3_64 "${sweeps[@]}" --group su3 --lattice 64
rates sweeps_su3_96x192 "${sweeps[@]}" --group su3 --lattice 96x96x96x192
rates sweeps_su2_64 "${sweeps[@]}" --group su2 --lattice 64
rates sweeps_su3_48_weak "${sweeps[@]}" --group su3 --lattice 48 --weak
rates sweeps_su2_48_weak "${sweeps[@]}" --group su2 --lattice 48 --weak
rates hop_32x64 --quarks --group su3 --lattice 32x32x32x64
rates hop_48x96 --quarks --group su3 --lattice 48x48x48x96
rates hop_32_weak --quarks --group su3 --lattice 32 --weak
rates cg_32x64 --quarks --operator wilson --group su3 --lattice 32x32x32x64
rates cg_48x96 --quarks --operator wilson --group su3 --lattice 48x48x48x96
rates cg_32_weak --quarks --operator wilson --group su3 --lattice 32 --weak
rates hmc_su3_64 --hmc --group su3 --lattice 64
rates hmc_su3_48_weak --hmc --group su3 --lattice 48 --weak
rates hmc_wilson_32x64 --hmc --card "$cards/su3_wilson_b5.6_k0.1575.toml" --lattice 32x32x32x64
sed 's/^steps = .*/steps = 2/' "$cards/thesis_z12.toml" >z12.toml
rates hmc_z12_two_steps --hmc --card z12.toml
[[ commands =~ $pattern ]] || exit 0

timed() { # name, devices, command: whose output goes to NAME.log
    local began
    began=$(date +%s.%N)
    "${@:3}" --devices "$2" >"$1.log" 2>&1
    date +%s.%N | awk -v name="$1" -v n="$2" -v began="$began" \
        '{ printf "%-12s %s devices %7.2f s\n", name, n, $1 - began }' | tee -a commands.txt
}

bytes() { # name, files: their digest
    cat "${@:2}" | grep -v '^#' -a | sha256sum | awk -v name="$1" '{ print name, substr($1, 1, 16) }' | tee -a commands.txt
}

rm -f commands.txt
for n in "${counts[@]}"; do
    own=$(mktemp -d -p .)
    for again in first second; do # the first compiles kernels
        rm -rf "$own"/*
        timed "scan $again" "$n" gauge-mc scan --group su3 --beta 5.5:5.815:0.005 --lattice 8x8x8x4 --thermalize 50 \
            --configs 200 --measure plaquette --format none --output "$own/scan"
        timed "generate $again" "$n" gauge-mc generate --group su3 --beta 6.0 --lattice 24 --thermalize 10 --configs 16 \
            --separation 5 --output "$own/run"
        timed "flow $again" "$n" gauge-mc measure flow "$own/run" --to 2
        timed "hmc $again" "$n" gauge-mc generate --card "$cards/su3_wilson_b5.6_k0.1575.toml" --lattice 16x16x16x32 \
            --thermalize 0 --configs 3 --separation 1 --output "$own/hmc"
    done
    bytes "tables of the scan" "$own"/scan/*/plaquette*.csv
    bytes "configurations" "$own"/run/configs/*
    bytes "table of the flow" "$own"/run/flow.csv
    bytes "tables of hmc" "$own"/hmc/*.csv
    rm -rf "$own"
done
