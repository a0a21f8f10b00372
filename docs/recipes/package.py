# For a repository of Spack: packages/py_gauge_mc/package.py
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyGaugeMc(PythonPackage):
    """Monte Carlo ensembles of SU(N) lattice gauge theory on CPUs and GPUs."""

    pypi = "gauge-mc/gauge_mc-0.2.0.tar.gz"

    license("MIT")

    # The release fills in the checksum of its source archive.
    version("0.2.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("cuda", default=False, description="NVIDIA GPUs")
    variant("analysis", default=True, description="Figures, and fits that need SciPy")
    variant("hdf5", default=False, description="Configurations and tables in HDF5")
    variant("parquet", default=False, description="Tables in Parquet")
    variant("mpi", default=False, description="Lattices that are divided over several hosts")

    depends_on("py-hatchling@1.25:", type="build")

    with default_args(type=("build", "run")):
        depends_on("python@3.11:")
        depends_on("py-orjson@3.10:")
        depends_on("py-numpy@2.0.2:")
        depends_on("py-typer@0.26:")
        depends_on("py-rich@14.3:")
        depends_on("py-tomli-w@1.0:")
        depends_on("py-packaging@24.2:")
        depends_on("py-platformdirs@4.0:")
        depends_on("py-threadpoolctl@3.2:")
        depends_on("py-psutil@5.9:")
        # Spack has CUDA 12; its toolkit has the compiler.
        depends_on("py-cuda-bindings@12", when="+cuda")
        depends_on("py-matplotlib@3.10.7:", when="+analysis")
        depends_on("py-scipy@1.13:", when="+analysis")
        depends_on("py-h5py@3.11:", when="+hdf5")
        depends_on("py-pyarrow@17.0:", when="+parquet")
        depends_on("py-mpi4py@4.1:", when="+mpi")

    # Kernels are compiled when they are first used.
    depends_on("cxx", type=("build", "run"))
    depends_on("cuda@12", type="run", when="+cuda")

    def setup_run_environment(self, env):
        env.set("CXX", self["cxx"].cxx)
        if self.spec.satisfies("+cuda"):
            env.set("CUDA_HOME", self.spec["cuda"].prefix)
