/* The header lives where generated pipelines find it, also in an installed wheel. */
#include "../../ina/switch/pipeline_abi.h"
