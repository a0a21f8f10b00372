#pragma once  // everything is in cuda_shim.h
