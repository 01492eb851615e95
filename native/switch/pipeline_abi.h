/* The header lives where generated pipelines find it, also in an installed wheel. */
#include "../../ina/switch/emit_c/runtime/pipeline_abi.h"
