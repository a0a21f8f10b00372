// The CRC-32 of IEEE 802.3, as in zlib: the polynomial is 0x04c11db7, here with its bits in reverse order.
#pragma once

#include "arch/arch.h"

constexpr unsigned CRC_POLYNOMIAL = 0xedb88320u;

// The effect of 32 bits on a CRC is linear. Tables of it for every LOOKUP_BITS bits:
constexpr int CRC_BITS = LOOKUP_BITS > 0 ? LOOKUP_BITS : 32;
constexpr int CRC_PIECES = (32 + CRC_BITS - 1) / CRC_BITS;
struct CrcTables {
    unsigned piece[CRC_PIECES][1 << LOOKUP_BITS];
};
constexpr CrcTables make_crc_tables() {
    CrcTables tables = {};
    for (int k = 0; k < CRC_PIECES; k++)
        for (unsigned n = 0; n < 1u << LOOKUP_BITS; n++) {
            unsigned crc = n << (LOOKUP_BITS * k);
            for (int bit = 0; bit < 32; bit++) crc = crc >> 1 ^ (crc & 1 ? CRC_POLYNOMIAL : 0u);
            tables.piece[k][n] = crc;
        }
    return tables;
}

// Return the CRC after one more word.
INLINE word crc_after(word crc, word next) {
    crc = crc ^ next;
    if constexpr (LOOKUP_BITS > 0) {
        static constexpr CrcTables tables = make_crc_tables();
        word sum = lookup(tables.piece[0], crc);
        UNROLL for (int k = 1; k < CRC_PIECES; k++) sum = sum ^ lookup(tables.piece[k], crc >> (LOOKUP_BITS * k));
        return sum;
    } else {
        UNROLL for (int bit = 0; bit < 32; bit++) crc = (crc >> 1) ^ (CRC_POLYNOMIAL & (word{} - (crc & 1)));
        return crc;
    }
}
