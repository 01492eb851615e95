// Port numbers of the chip, and what the program takes for granted about pipes. The one place for both.
//
// One pipe: every pipe of a Tofino has its own copy of all registers. All workers of a job, and nobody
// else of that job, must be behind ports of one pipe (device port >> 7); a worker behind another pipe
// would be summed into another pipe's registers, and the round would never be complete. The controller
// refuses such a job.
//
// Recirculation (Tofino 1): a packet that leaves with a result passes its pipe twice, since a register
// pair gives out one of its two words a pass. It goes through the recirculation port of the pipe that
// it came in by, so that it meets the same registers again. Ports 64 to 71 of a pipe are not on the
// front panel: nobody outside can send a packet that seems to have been here before. The port must be
// free of other uses and in its normal mode: no packet generator, no loopback set by hand. It carries
// one packet for each result and each replay: at most 1/n of what n workers of a job send, and replays.
//
// Tofino 2 gives out both words at once: nothing recirculates.

#ifndef INA_TOFINO_PORTS_P4
#define INA_TOFINO_PORTS_P4

#define PIPE_OF(port) ((port)[8:7])

#if __TARGET_TOFINO__ == 1
#define RECIRCULATION_PORT 68 // within its pipe
#define PORT_WITHIN_PIPE 0x7F
#endif

// The CPU's Ethernet port, for packet-in and packet-out. Boards differ (PCIe: 192 or 320 on Tofino 1,
// 0 on Tofino 2): compile with -DCPU_PORT=... for another.
#ifndef CPU_PORT
#if __TARGET_TOFINO__ == 1
#define CPU_PORT 64
#else
#define CPU_PORT 2
#endif
#endif

#endif // INA_TOFINO_PORTS_P4
