/*
 * output.h: the two forms of the output; look.h has what is printed.
 */
#ifndef KA_CONTIGUITY_OUTPUT_H
#define KA_CONTIGUITY_OUTPUT_H

#include "look.h"

extern bool ka_json_file(const KaFileLook *file, const char *path);
extern bool ka_json_process(const KaProcessLook *process, int64_t pid);
extern bool ka_json_kernel(const KaKernelLook *kernel);
extern bool ka_json_measurement(const KaMeasurement *measurement);

#endif							/* KA_CONTIGUITY_OUTPUT_H */
