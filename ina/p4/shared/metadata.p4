// What the controls of the INA path tell each other about one packet.

#ifndef INA_METADATA_P4
#define INA_METADATA_P4

#include "constants.p4"

#ifndef TARGET_METADATA
#define TARGET_METADATA
#endif

// What a slot knows of the round that owns it, besides the epoch: two words of one register.
struct round_t {
    bit<32> seq;
    bit<32> bitmap;
}

// Of a slot that jobs share, besides: two words of another.
struct owner_t {
    bit<32> epoch; // of the job that claimed it last; 0: nobody yet
    bit<32> stamp; // when it was last heard of, and then some for the less important
}

// What mode `shared` knows besides. Numbers of slots that the job shares are its lanes'.
#ifdef MODE_SHARED
#define SHARED_METADATA                                                                        \
    bit<1> is_shared;      /* the job claims its slots (Claims); without: it has them */       \
    bit<16> lane;          /* of the packet: two slots of the aggregator's, one here */        \
    bit<16> claimable;     /* lanes below it have a slot here that they may claim */           \
    bit<32> now;           /* any clock, in any unit; wraps around */                          \
    bit<32> age_limit;     /* a slot of which nothing was heard for so long is old */          \
    bit<32> lead;          /* by so much earlier than now its own seem to be heard of */       \
    bit<32> stamp;         /* what the packet leaves in the slot */                            \
    bit<32> owner;         /* epoch of the slot's owner, once this packet has claimed it */    \
    bit<32> strangers;     /* in the packet's set, who do not send to its sender */            \
    bit<1> is_resend;      /* not its worker's first copy */                                   \
    bit<1> is_flush;       /* takes the round's sum along */                                   \
    bit<1> collides;       /* the slot is another job's */
#else
#define SHARED_METADATA
#endif

// And where it puts an owner's sum out: of the owner (Claims), and what its packets said: slot,
// exponent, value_type, whether their round has values.
#ifdef MODE_EVICTS
#define EVICTION_METADATA                                                                      \
    bit<1> evicts; bit<1> has_values; bit<1> knows_owner;                                      \
    bit<32> said; bit<32> former; bit<32> former_seq;                                          \
    bit<16> owner_job; bit<16> owner_index; bit<32> owner_full; bit<9> owner_port;             \
    bit<8> owner_worker; bit<4> owner_level;
#else
#define EVICTION_METADATA
#endif

struct ina_metadata_t {
    bit<1>  is_ours;      // an INA packet that is addressed to this switch
    access_t access;      // what the packet does to its slot
    bit<8>  drop_reason;  // why not (INA_DROP_*), where nothing leaves the switch

    // From the job table and the member table (Admission).
    bit<32> epoch;        // the job's whole incarnation number; the header carries the low 16 bits
    bit<SLOT_INDEX_BITS> slot_index; // physical: the job's first slot + the header's slot
    bit<16> job_slots;    // length of the job's range
    bit<32> full_bitmap;  // a bit for every child: worker of the job, or switch that sums for it
    bit<16> group;        // multicast group of the children
    bit<16> job_index;    // of the per-job counters
    bit<32> worker_bit;   // the sender's bit, 1 << worker
    bit<1>  is_inner;     // this switch has a parent for the job; without: it is the root
    bit<24> way;          // the part of the packet's path that says which of the children

    // The slot, as this packet found it and leaves it (Slots, Contribution).
    bit<32> age;          // this epoch - owner's: 0 the same, below 2^31 newer, else older
    bit<32> before;       // workers in this packet's round before it; 0: it begins the round
    bit<32> bitmap;       // workers in this packet's round now; 0: the packet is stale
    bit<32> missing;      // workers that the sum still lacks; 0: complete
    bit<8>  flags;        // this packet's sticky flags, then the slot's

    SHARED_METADATA       // of programs with that mode
    EVICTION_METADATA
    TARGET_METADATA       // what one target's parser and shim add
}

#endif // INA_METADATA_P4
