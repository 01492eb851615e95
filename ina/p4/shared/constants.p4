// Sizes of the build, and the numbers that the controls agree on.

#ifndef INA_CONSTANTS_P4
#define INA_CONSTANTS_P4

// int32 values in a packet: 64 is what Tofino sums in one pass; 256 (1 KiB), 360 (the most that a
// multiple of 8 fits into an MTU of 1500) and 1024 (shared memory, jumbo frames) are for software
// targets.
#ifndef VALUES_PER_PACKET
#define VALUES_PER_PACKET 64
#endif

// Slots of the whole switch, shared out to jobs by the controller. 256 values: 8 MiB of registers,
// 360: 11.25 MiB, 1024: 32 MiB.
#ifndef SLOTS_TOTAL
#define SLOTS_TOTAL 8192
#endif

// Width of a slot's index; Tofino adds 16 bits where it would need a whole 32-bit container.
#ifndef SLOT_INDEX_BITS
#define SLOT_INDEX_BITS 32
#endif

// Jobs that may be admitted at one time; also the length of the per-job counters.
#define JOBS_TOTAL 256
// A node has at most 32 children of a job (INA_MAX_WORKERS); the pool is shared by all jobs.
#define MEMBERS_TOTAL 4096
// IPv4 addresses at which the switch itself is reached.
#define OWN_ADDRESSES_TOTAL 16

// What this packet does to its slot. Admission and Contribution decide it, Accumulate and Distribute
// act on it.
typedef bit<8> access_t;
const access_t ACCESS_REFUSED = 0; // nothing: not admitted; drop_reason says why
const access_t ACCESS_TAKE = 1;    // newer than the owner: overwrite
const access_t ACCESS_JOIN = 2;    // first contribution of this worker to the owner's round: add
const access_t ACCESS_READ = 3;    // repeated: read out; a finished sum goes back to its sender
const access_t ACCESS_STALE = 4;   // older than the owner: nothing. Contributions start with it
const access_t ACCESS_DOWN = 5;    // the parent's result: the children get it; it adds to no slot
const access_t ACCESS_EVICT = 6;   // takes another job's slot over, and leaves as what was in it

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> IP_PROTOCOL_UDP = 17;
const bit<16> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
// What UDP and IP say of packets in nothing else, without values and with them.
#define EMPTY_UDP_BYTES (UDP_BYTES + INA_HEADER_BYTES)
#define EMPTY_IP_BYTES (IPV4_BYTES + EMPTY_UDP_BYTES)
#define FULL_UDP_BYTES (EMPTY_UDP_BYTES + ((bit<16>)VALUES_PER_PACKET << 2))
#define FULL_IP_BYTES (IPV4_BYTES + FULL_UDP_BYTES)
const bit<2> ECN_NOT_ECT = 0; // the sender does not understand ECN: never mark
const bit<2> ECN_CE = 3;      // congestion experienced

#endif // INA_CONSTANTS_P4
