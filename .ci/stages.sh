# What the stages of stages.py do, in the checkout; a failing command ends a stage.
shopt -s nullglob
PYTEST=".venv/bin/python -m pytest -p no:cacheprovider"
NUMBERS=(tests/analysis tests/fits tests/quantities/{,*/}test_*.py tests/extensions/*/*/{analysis,fits} tests/reference)
# These go through everything: kernels, files, commands, fits, exports and plots.
SAMPLE=(tests/test_pins.py tests/files tests/formats/test_nersc.py tests/formats/test_ildg.py tests/exports tests/fits
    tests/quantities/{,*/}test_*.py tests/cli/test_json.py tests/plots tests/extensions/*/*/plots)
ON_AMD="tests/domain tests/emulator/test_orders.py tests/devices/test_cuda_device.py tests/test_strict.py
    tests/extensions/quarks/test_device_iterations.py::test_bytes_are_those_with_the_host_on_all_divisions"

get() { # program, packages of Debian that bring it
    command -v "$1" >/dev/null || ! command -v apt-get >/dev/null ||
        (apt-get update && apt-get install -y --no-install-recommends "${@:2}") >"$TEMPORARY/apt.log" 2>&1 ||
        echo "$1 cannot be installed: $(tail -1 "$TEMPORARY/apt.log")"
}

get_environment() {
    .venv/bin/pip install --quiet -e '.[dev,docs]'
    get chromium chromium                            # for pages
    get qemu-aarch64 qemu-user g++-aarch64-linux-gnu # for emulated ARM processors
}

try_sample() { # python, options of pip
    local venv
    venv=$(mktemp -d -p "$TEMPORARY")
    "$1" -m venv "$venv"
    "$venv/bin/pip" install --quiet "${@:2}" '.[test,notebook]'
    "$venv/bin/python" -m pytest -p no:cacheprovider "${SAMPLE[@]}"
}

try_oldest() {
    .venv/bin/python tests/tools/lowest_versions.py >"$TEMPORARY/constraints.txt"
    try_sample python3 --constraint "$TEMPORARY/constraints.txt"
}

try_numbers() { # processor of BLAS, share of slow tests: tolerances follow from the method
    export OPENBLAS_CORETYPE=$1 OPENBLAS_NUM_THREADS=2 # all other tests have one thread
    $PYTEST "${NUMBERS[@]}"
    $PYTEST -m "slow and $MOST" "${@:2}" "${NUMBERS[@]}"
}

try_registers() {
    local size here
    here=$(.venv/bin/python -c 'from gauge_mc.devices.cpu.compiler import register_bytes; print(register_bytes())')
    for size in 16 32 64; do # all other tests have this machine's
        [ "$size" = "$here" ] || $PYTEST -p tests.tools.registers --registers "$size" -m "$MOST" \
            tests/test_pins.py tests/quantities/potential/test_ratios.py
    done
}

try_documentation() {
    NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict -f .mkdocs.yml -d "$TEMPORARY/site"
    .venv/bin/python tests/tools/check_site.py "$TEMPORARY/site"
    $PYTEST -m "$MOST" tests/reports/test_browser.py tests/watch/test_live_browser.py
}

try_pages() { # core of the processor, options and pages: threads of commands would wait for each other on two
    taskset -pc "$(($1 % $(nproc)))" "$BASHPID" >/dev/null || true
    $PYTEST -p tests.documentation.plugin "${@:2}"
}

try_guides() { # reads lines of pages: each of two cores takes the next line when it is done with one
    export -f try_pages
    export PYTEST
    xargs -r -L 1 -P 2 --process-slot-var=CORE bash -euo pipefail -c '
        shown=$(try_pages "$CORE" "--environment=$PWD/.venv" "$@" 2>&1) && code=0 || code=$?
        echo "$shown"
        exit "$code"' bash
}

try_core() { # the pure-gauge program alone: its tests, and a new user's commands, without the folder of extensions
    mkdir "$TEMPORARY/core"
    git ls-files -z | grep -zvE '^(gauge_mc|tests|docs)/extensions/' | xargs -0 cp --parents -t "$TEMPORARY/core"
    cd "$TEMPORARY/core"
    python3 -m venv .venv
    .venv/bin/pip install --quiet -e '.[test]'
    $PYTEST
    export PATH="$PWD/.venv/bin:$PATH"
    gauge-mc generate --beta 2.5 --lattice 8x8x8x8 --thermalize 50 --configs 20 --separation 5 --output run
    gauge-mc measure wilson-loops run
    gauge-mc fit creutz run
    gauge-mc plot history run
    gauge-mc measure flow run
    gauge-mc report run
    gauge-mc verify run
    gauge-mc scan --beta 2.2:2.4:0.1 --lattice 4x4x4x4 --configs 20 --format none --output scan
    gauge-mc status scan
    gauge-mc scan --output scan --refine --dry-run
}

try_packages() { # in an empty environment each
    local package
    .venv/bin/python -m build --outdir "$TEMPORARY/packages" . >"$TEMPORARY/build.log" 2>&1 ||
        { cat "$TEMPORARY/build.log" && exit 1; }
    .venv/bin/twine check --strict "$TEMPORARY"/packages/*
    .venv/bin/check-wheel-contents --ignore W002 "$TEMPORARY"/packages/*.whl
    cd "$TEMPORARY"
    export PATH="$TEMPORARY/empty/bin:$PATH" GAUGE_MC_CACHE="$TEMPORARY/packages.kernels"
    for package in packages/*; do
        rm -rf empty run
        python3 -m venv empty
        empty/bin/pip install --quiet "$package"
        gauge-mc --version
        gauge-mc doctor
        gauge-mc generate --lattice 4x4x4x8 --thermalize 5 --configs 12 --separation 2 --output run
        gauge-mc measure wilson-loops run
        gauge-mc fit creutz run
        gauge-mc info run
        gauge-mc verify run
    done
}
