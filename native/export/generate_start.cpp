// Start of a generation: its sizes, the contents of states before the first step, and the passes that read prompts. Sizes and passes are those
// of a run from Node, so that sums are of the same numbers in the same order.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "generate.hpp"

namespace heddle::exported {

namespace {

// Capacities in steps and sources are multiples of these.
constexpr int64_t step_unit = 8, source_unit = 8;
// Minimum capacity of caches, in places; they grow in eighths of the next power of two.
constexpr int64_t least_places = 32;
// Minimum rows of a pass: matmuls compute as many at once.
constexpr int64_t least_tokens = 8;

int64_t rounded(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t power_of_2(int64_t least) {
  int64_t power = 1;
  while (power < least) power *= 2;
  return power;
}

// Texts to read: prompts, or those of beams that go on, each into its own row.
const std::vector<std::vector<int32_t>>& texts_of(const Request& request) { return request.beam_texts.empty() ? request.prompts : request.beam_texts; }

int64_t longest_of(const Request& request) {
  size_t longest = 0;
  for (const auto& text : texts_of(request)) longest = std::max(longest, text.size());
  return static_cast<int64_t>(longest);
}

int32_t bits(float value) {
  int32_t found = 0;
  std::memcpy(&found, &value, sizeof found);
  return found;
}

int32_t number(const Beginning& beginning, double value) {
  return beginning.integer ? static_cast<int32_t>(value) : bits(static_cast<float>(value));
}

// Tokens of a prompt that one pass reads.
struct Piece {
  size_t prompt, first, count;
};

int64_t eighths(int64_t tokens) { return rounded(tokens, std::max(power_of_2(tokens) / 8, least_tokens)); }

Pass pass_of(const Family& family, const Request& request, const Sizes& sizes, const std::vector<Piece>& runs) {
  size_t tokens = 0, longest = 0;
  for (const Piece& run : runs) {
    tokens += run.count;
    longest = std::max(longest, run.count);
  }
  const auto most = static_cast<int64_t>(request.chunk);
  Pass pass;
  pass.sizes = sizes;
  pass.sizes.pass_tokens = std::max(std::min(eighths(static_cast<int64_t>(tokens)), std::max(most, static_cast<int64_t>(tokens))), least_tokens);
  pass.sizes.pass_sequences = power_of_2(static_cast<int64_t>(runs.size()));
  pass.sizes.pass_longest = std::min(power_of_2(static_cast<int64_t>(longest)), std::max(most, static_cast<int64_t>(longest)));
  const auto rows = static_cast<size_t>(pass.sizes.pass_tokens), sequences = static_cast<size_t>(pass.sizes.pass_sequences);
  std::vector<int32_t> ids(rows), places(rows), sequence(rows, -1), positions(rows);
  // Sequences without tokens come after the others.
  std::vector<int32_t> starts(sequences, static_cast<int32_t>(tokens)), lengths(sequences), first(sequences), slots(sequences);
  std::vector<int32_t> writers(static_cast<size_t>(sizes.prompts * sizes.width), -1);
  size_t at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Piece& run = runs[i];
    const auto row = static_cast<int32_t>(run.prompt * (request.beam_texts.empty() ? request.width : 1));
    starts[i] = static_cast<int32_t>(at);
    lengths[i] = static_cast<int32_t>(run.count);
    first[i] = static_cast<int32_t>(run.first);
    slots[i] = row;
    writers[static_cast<size_t>(row)] = static_cast<int32_t>(i);
    for (size_t position = 0; position < run.count; ++position, ++at) {
      ids[at] = texts_of(request)[run.prompt][run.first + position];
      places[at] = static_cast<int32_t>(run.first + position);
      sequence[at] = static_cast<int32_t>(i);
      positions[at] = static_cast<int32_t>(position);
    }
  }
  for (const Input input : family.reader.inputs) {
    pass.values.resize(static_cast<size_t>(rounded(static_cast<int64_t>(pass.values.size()), 4)));
    pass.at.push_back(pass.values.size());
    const auto& values = input == Input::ids         ? ids
                         : input == Input::places    ? places
                         : input == Input::sequences ? sequence
                         : input == Input::positions ? positions
                         : input == Input::starts    ? starts
                         : input == Input::lengths   ? lengths
                         : input == Input::first     ? first
                         : input == Input::slots     ? slots
                                                     : writers;
    pass.values.insert(pass.values.end(), values.begin(), values.end());
  }
  return pass;
}

Pass source_pass(const Family& family, const Request& request, const Sizes& sizes) {
  Pass pass;
  pass.sizes = sizes;
  pass.sizes.pass_tokens = sizes.prompts * sizes.source;
  for (const Input input : family.reader.inputs) {
    pass.values.resize(static_cast<size_t>(rounded(static_cast<int64_t>(pass.values.size()), 4)));
    pass.at.push_back(pass.values.size());
    for (const auto& prompt : request.prompts) {
      if (input == Input::source_lengths) {
        pass.values.push_back(static_cast<int32_t>(prompt.size()));
        continue;
      }
      const size_t end = pass.values.size() + static_cast<size_t>(sizes.source);
      pass.values.insert(pass.values.end(), prompt.begin(), prompt.end());
      pass.values.resize(end, family.pad);
    }
  }
  return pass;
}

}  // namespace

std::vector<int64_t> Sizes::of(const std::vector<Quantity>& dims) const {
  std::vector<int64_t> found;
  for (const Quantity dim : dims) {
    switch (dim) {
      case Quantity::prompts: found.push_back(prompts); break;
      case Quantity::width: found.push_back(width); break;
      case Quantity::rows: found.push_back(prompts * width); break;
      case Quantity::places: found.push_back(places); break;
      case Quantity::steps: found.push_back(steps); break;
      case Quantity::source: found.push_back(source); break;
      case Quantity::ends: found.push_back(ends); break;
      case Quantity::forced_ends: found.push_back(forced_ends); break;
      case Quantity::pass_tokens: found.push_back(pass_tokens); break;
      case Quantity::pass_sequences: found.push_back(pass_sequences); break;
      case Quantity::pass_longest: found.push_back(pass_longest); break;
    }
  }
  return found;
}

Sizes sizes_of(const Family& family, const Request& request) {
  Sizes sizes;
  sizes.prompts = static_cast<int64_t>(request.prompts.size());
  sizes.width = request.width;
  sizes.ends = std::max<int64_t>(1, static_cast<int64_t>(request.ends.size()));
  sizes.forced_ends = std::max<int64_t>(1, static_cast<int64_t>(request.forced_last.size()));
  sizes.steps = rounded(request.steps, step_unit);
  const int64_t longest = longest_of(request);
  if (family.sources) {
    sizes.source = std::min<int64_t>(rounded(longest, source_unit), family.positions);
    sizes.places = sizes.steps;
  } else {
    const int64_t length = longest + request.steps - request.chosen;
    sizes.places = std::min<int64_t>(rounded(length, std::max(power_of_2(length) / 8, least_places)), family.positions);
  }
  return sizes;
}

std::vector<int32_t> begin_with(const Beginning& beginning, size_t count, const Family& family, const Request& request, const Sizes& sizes) {
  const auto rows = static_cast<size_t>(sizes.prompts * sizes.width), width = static_cast<size_t>(sizes.width);
  const auto prompt_of = [&](size_t row) -> const std::vector<int32_t>& { return request.beam_texts.empty() ? request.prompts[row / width] : request.beam_texts[row]; };
  const std::vector<int32_t> start = {family.start};
  const auto text_of = [&](size_t row) -> const std::vector<int32_t>& { return family.sources ? start : prompt_of(row); };
  const auto seed_of = [&](size_t row) { return request.seeds[request.seeds.size() == 1 ? 0 : row / width]; };
  // Words follow the longest prompt; with sources they begin at place 0.
  const int32_t longest = family.sources ? 0 : static_cast<int32_t>(longest_of(request) - 1);
  const auto of_rows = [&](auto value) {
    std::vector<int32_t> values(rows);
    for (size_t row = 0; row < rows; ++row) values[row] = value(row);
    return values;
  };
  switch (beginning.how) {
    case Begin::fill: return std::vector<int32_t>(count, number(beginning, beginning.value));
    case Begin::first_beam: return of_rows([&](size_t row) { return number(beginning, row % width == 0 ? 0 : beginning.value); });
    case Begin::table: {
      const size_t places = count / rows;
      std::vector<int32_t> table(count);
      for (size_t i = 0; i < count; ++i) {
        const size_t row = i / places;
        const bool shares = request.beam_texts.empty() && i % places < static_cast<size_t>(longest);
        table[i] = static_cast<int32_t>(shares ? row - row % width : row);
      }
      return table;
    }
    case Begin::words: return of_rows([&](size_t row) { return text_of(row).back(); });
    case Begin::behind: return of_rows([&](size_t row) { return static_cast<int32_t>(text_of(row).size()) - 1; });
    case Begin::longest: return std::vector<int32_t>(count, longest);
    case Begin::lengths: {
      std::vector<int32_t> lengths;
      for (const auto& prompt : request.prompts) lengths.push_back(static_cast<int32_t>(prompt.size()));
      return lengths;
    }
    // An id that no word has, if a text has no end id.
    case Begin::ends: return request.ends.empty() ? std::vector<int32_t>{-1} : request.ends;
    case Begin::banned: return family.banned;
    case Begin::minimum: return of_rows([&](size_t) { return static_cast<int32_t>(request.least); });
    case Begin::penalty: return of_rows([&](size_t) { return bits(request.penalty); });
    case Begin::seen: {
      std::vector<int32_t> seen(count);
      for (size_t row = 0; row < rows; ++row) {
        for (const int32_t id : text_of(row)) seen[row * (count / rows) + static_cast<size_t>(id)] = 1;
      }
      return seen;
    }
    case Begin::text: {
      const size_t places = count / rows;
      std::vector<int32_t> texts(count);
      for (size_t row = 0; row < rows; ++row) {
        const auto& text = text_of(row);
        std::copy_n(text.begin(), std::min(text.size(), places), texts.begin() + static_cast<std::ptrdiff_t>(row * places));
      }
      return texts;
    }
    case Begin::forced_first: return of_rows([&](size_t row) { return text_of(row).size() == 1 ? request.forced_first : -1; });
    // Without one, an id that no word has.
    case Begin::forced_last: return request.forced_last.empty() ? std::vector<int32_t>{-1} : request.forced_last;
    case Begin::limit: return of_rows([&](size_t) { return static_cast<int32_t>(request.steps); });
    case Begin::temperature: return of_rows([&](size_t) { return bits(request.temperature); });
    case Begin::top_k: return of_rows([&](size_t) { return static_cast<int32_t>(request.top_k); });
    case Begin::top_p: return of_rows([&](size_t) { return bits(request.top_p); });
    case Begin::min_p: return of_rows([&](size_t) { return bits(request.min_p); });
    case Begin::seeds_low: return of_rows([&](size_t row) { return static_cast<int32_t>(static_cast<uint32_t>(seed_of(row))); });
    case Begin::seeds_high: return of_rows([&](size_t row) { return static_cast<int32_t>(static_cast<uint32_t>(seed_of(row) >> 32)); });
  }
  return {};
}

std::vector<Pass> passes_of(const Family& family, const Request& request, const Sizes& sizes) {
  if (family.sources) return {source_pass(family, request, sizes)};
  std::vector<Pass> passes;
  std::vector<Piece> runs;
  size_t room = request.chunk;
  for (size_t prompt = 0; prompt < texts_of(request).size(); ++prompt) {
    // The first step takes the last token.
    const size_t length = texts_of(request)[prompt].size() - 1;
    for (size_t first = 0; first < length;) {
      const size_t count = std::min(room, length - first);
      runs.push_back({prompt, first, count});
      first += count;
      room -= count;
      if (room > 0) continue;
      passes.push_back(pass_of(family, request, sizes, runs));
      runs.clear();
      room = request.chunk;
    }
  }
  if (!runs.empty()) passes.push_back(pass_of(family, request, sizes, runs));
  return passes;
}

}  // namespace heddle::exported
