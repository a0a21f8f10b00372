-- gauge-mc as a module, for Lmod: in a folder of MODULEPATH, as gauge-mc/0.2.0.lua. The package is in an environment:
--
--   python3 -m venv /opt/gauge-mc/0.2.0
--   /opt/gauge-mc/0.2.0/bin/pip install 'gauge-mc[analysis,cuda]==0.2.0'
--   mkdir /opt/gauge-mc/0.2.0/commands && ln --symbolic --target-directory=/opt/gauge-mc/0.2.0/commands ../bin/gauge-mc
--
-- Only the command is put on PATH, and not the python and the pip of that environment.
local prefix = pathJoin("/opt/gauge-mc", myModuleVersion())

help([[
Monte Carlo ensembles of SU(N) lattice gauge theory on CPUs and GPUs: gauge-mc --help.
Kernels are compiled when they are first used, by g++ or what the variable CXX names.
]])
whatis("Name: gauge-mc")
whatis("Version: " .. myModuleVersion())
whatis("Description: Monte Carlo ensembles of SU(N) lattice gauge theory on CPUs and GPUs")

prepend_path("PATH", pathJoin(prefix, "commands"))
