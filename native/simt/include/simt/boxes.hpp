// The copy engine (TMA): tensor maps, boxes of a tensor copied to one block of a cluster or several, contiguous bytes, and 16 bytes sent to another
// block (st.async). A copy marks its destination when it is started and arrives later, when its barrier counts the bytes.
#ifndef HEDDLE_SIMT_BOXES_HPP
#define HEDDLE_SIMT_BOXES_HPP

#include "buffer.hpp"
#include "phases.hpp"

/// A tensor and its box, of up to five dimensions, the fastest first. Strides are in bytes, and begin with that of the second dimension.
struct CUtensorMap {
  const char* data;
  const char* name;
  uint64_t extents[5], strides[4];
  uint32_t box[5];
  uint32_t rank, element_bytes;

  uint32_t box_bytes() const {
    uint32_t bytes = element_bytes;
    for (uint32_t i = 0; i < rank; i++) bytes *= box[i];
    return bytes;
  }
};

namespace heddle::simt {

/// Swizzles of shared memory by their code in a matrix descriptor: bits of an address that are exchanged with those above.
enum class Swizzle : uint8_t { none, bytes_128, bytes_64, bytes_32 };

inline uint32_t swizzled(uint32_t address, Swizzle swizzle) {
  const uint32_t mask = swizzle == Swizzle::bytes_128 ? 7 : swizzle == Swizzle::bytes_64 ? 3 : swizzle == Swizzle::bytes_32 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

/// Copies a box at `at` of the tensor to `to`, in rows of 128 bytes with their swizzle. What lies outside of the tensor is zero.
inline void copy_box_to(char* shared, uint32_t to, const CUtensorMap& map, const int32_t (&at)[5]) {
  const uint32_t row_elements = map.box[0], rows = map.box_bytes() / (row_elements * map.element_bytes);
  for (uint32_t row = 0; row < rows; row++) {
    uint64_t offset = 0;
    bool is_inside = true;
    uint32_t rest = row;
    for (uint32_t i = 1; i < map.rank; i++) {
      const int64_t place = at[i] + static_cast<int64_t>(rest % map.box[i]);
      rest /= map.box[i];
      is_inside = is_inside && place >= 0 && static_cast<uint64_t>(place) < map.extents[i];
      offset += static_cast<uint64_t>(place) * map.strides[i - 1];
    }
    for (uint32_t i = 0; i < row_elements; i++) {
      const int64_t column = int64_t{at[0]} + i;
      char* const place = shared + swizzled(to + (row * row_elements + i) * map.element_bytes, Swizzle::bytes_128);
      if (is_inside && column >= 0 && static_cast<uint64_t>(column) < map.extents[0]) {
        memcpy(place, map.data + offset + static_cast<uint64_t>(column) * map.element_bytes, map.element_bytes);
      } else {
        memset(place, 0, map.element_bytes);
      }
    }
  }
}

struct BoxSource {
  CUtensorMap map;
  int32_t at[5];
};
static_assert(sizeof(BoxSource) <= EngineCopy::kMostBytes, "a copy holds its source");

inline void arrive_box(Worker& block, const EngineCopy& copy) {
  BoxSource source;
  memcpy(&source, copy.source, sizeof source);
  copy_box_to(block.dynamic->data, copy.to, source.map, source.at);
  arrive_bytes(block, copy);
}

inline void arrive_sent(Worker& block, const EngineCopy& copy) {
  memcpy(block.dynamic->data + copy.to, copy.source, copy.bytes);
  arrive_bytes(block, copy);
}

/// Starts a copy of `bytes` to the offset `to` of each block of the mask; its barrier is at the offset `counter` there. `across_blocks`: a waiting thread
/// sees the bytes only if it acquires them from the cluster.
template <class Source>
void start_engine_copy(Arrival arrive, const Source& source, uint32_t blocks, uint32_t to, uint32_t counter, uint32_t bytes, Swizzle swizzle,
                       bool across_blocks, Site site) {
  Cluster& cluster = cluster_of(site);
  const Knowledge mine = cluster.mine();
  if (blocks == 0 || blocks >> cluster.count != 0) {
    current->fault("a copy at %s:%d goes to the blocks of mask 0x%x, of a cluster of %u", site.name(), site.line, blocks, cluster.count);
  }
  if (uint64_t{to} + bytes > current->shared_bytes) {
    current->fault("a copy at %s:%d to shared bytes from %u on ends at %u, beyond the %u of the block", site.name(), site.line, to, to + bytes,
                   current->shared_bytes);
  }
  EngineCopy& copy = cluster.start_copy();
  copy.arrive = arrive, copy.blocks = blocks, copy.to = to, copy.counter = counter, copy.bytes = bytes, copy.site = site;
  memcpy(copy.source, &source, sizeof source);
  for (uint32_t rank = 0; rank < cluster.count; rank++) {
    if ((blocks >> rank & 1u) == 0) continue;
    Worker& block = block_at(rank, site);
    const PhaseState& state = phase_at({&block, counter}, site, true);
    copy.phases[rank] = state.phase;
    const Access access = {state.phase + 1, static_cast<uint16_t>(state.agent + (across_blocks ? 1 : 0)), Proxy::async,
                           static_cast<uint8_t>(swizzle), site};
    for (uint32_t word = to / 16; word < (to + bytes + 15) / 16; word++) cluster.history[rank].write(word, access, mine);
  }
}

inline void start_box(uint32_t blocks, uint32_t to, uint32_t counter, const CUtensorMap& map, const int32_t (&at)[5], Site site) {
  if (to % 128 != 0) current->fault("a box is copied at %s:%d to shared byte %u, expected a multiple of 128", site.name(), site.line, to);
  BoxSource source = {map, {}};
  memcpy(source.at, at, sizeof source.at);
  start_engine_copy(arrive_box, source, blocks, to, counter, map.box_bytes(), Swizzle::bytes_128, false, site);
}

/// The block of a cluster address, as a mask.
inline uint32_t mask_of(uint32_t address, Site site) { return 1u << place_at(address, site).block->rank; }

inline void send_bytes_16(uint32_t to, uint32_t counter, const void* bytes, Site site) {
  struct Sixteen {
    char bytes[16];
  } source;
  memcpy(&source, bytes, sizeof source);
  if (mask_of(to, site) != mask_of(counter, site)) current->fault("bytes sent at %s:%d are counted in another block", site.name(), site.line);
  const uint32_t offset = place_at(to, site).offset;
  if (offset % 16 != 0) current->fault("16 bytes are sent at %s:%d to shared byte %u", site.name(), site.line, offset);
  start_engine_copy(arrive_sent, source, mask_of(to, site), offset, place_at(counter, site).offset, 16, Swizzle::none, true, site);
}

}  // namespace heddle::simt

namespace heddle::tensor_maps {

/// The GPU's encoder exists here.
inline const void* encoder() { return ""; }

/// `strides` are in elements and begin with that of the second dimension. Refuses what the driver would refuse.
template <class T, int Rank>
int32_t encode(CUtensorMap* map, heddle_error* error, const char* name, const In<T>& tensor, const uint64_t (&extents)[Rank],
               const uint64_t (&strides)[Rank - 1], const uint32_t (&box)[Rank]) {
  const simt::Buffer& buffer = tensor.buffer();
  *map = {buffer.data, buffer.name, {}, {}, {}, Rank, sizeof(T)};
  bool is_right = reinterpret_cast<uintptr_t>(buffer.data) % 16 == 0 && box[0] * sizeof(T) == 128;
  uint64_t last = 0;
  for (int i = 0; i < Rank; i++) {
    map->extents[i] = extents[i];
    map->box[i] = box[i];
    if (i > 0) map->strides[i - 1] = strides[i - 1] * sizeof(T);
    is_right = is_right && extents[i] > 0 && box[i] > 0 && box[i] <= 256 && (i == 0 || map->strides[i - 1] % 16 == 0);
    last += (extents[i] - 1) * (i == 0 ? 1 : strides[i - 1]);
  }
  if (is_right && last < buffer.count) return HEDDLE_OK;
  return fail(error, HEDDLE_INVALID, "kernel %s: the tensor map of %s is not aligned to 16 bytes, has a box of more than 256 or reaches beyond %llu elements",
              name, buffer.name, static_cast<unsigned long long>(buffer.count));
}

}  // namespace heddle::tensor_maps

#endif
