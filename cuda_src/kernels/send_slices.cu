// Copy pieces of memory, such as slices of a slab to the halos of its neighbours on other devices. All have the same
// size, and begin and end at multiples of 16 bytes. The threads are those of the even sites of one slice.
#include "arch/launch.h"

constexpr int MOST_PIECES = 4;
constexpr int PACKET_BYTES = 16;

struct alignas(PACKET_BYTES) Packet {
    unsigned words[PACKET_BYTES / 4];
};

struct Arguments {
    Geometry geometry;
    Work work;
    const void* from[MOST_PIECES];
    void* to[MOST_PIECES];
    int pieces;
    long long packets;  // of every piece
};

INLINE void send_slices_site(const Arguments& a, const Site& site) {
    UNROLL for (int piece = 0; piece < MOST_PIECES; piece++) {
        if (piece == a.pieces) return;
        const Packet* const from = (const Packet*)a.from[piece];
        Packet* const to = (Packet*)a.to[piece];
        for (long long n = site.slot; n < a.packets; n += a.geometry.slots) to[n] = from[n];
    }
}

SITE_KERNEL(send_slices, send_slices_site)
