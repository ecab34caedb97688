// Log-probabilities of generated tokens: logprobs WEIGHTS PROMPTS KIND TOKENS. A line of the output has those of one text. Kinds: 0 is greedy, 1 and 2
// are three beams by the plain rule and by the HF rule with a length penalty of 2.
#include <cstdio>
#include <sstream>

#include "seq2seq.hpp"

int main(int argc, char** argv) try {
  if (argc < 5) throw std::runtime_error("usage: logprobs WEIGHTS PROMPTS KIND TOKENS");
  seq2seq::Options options;
  const int kind = std::stoi(argv[3]);
  options.max_new_tokens = static_cast<uint32_t>(std::stoul(argv[4]));
  if (kind > 0) {
    options.choice = HEDDLE_BEAMS;
    options.beams = options.returned = 3;
  }
  if (kind == 2) {
    options.rule = HEDDLE_HF;
    options.length_penalty = 2;
  }
  std::vector<std::vector<int32_t>> prompts;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    prompts.emplace_back();
    for (int32_t id = 0; words >> id;) prompts.back().push_back(id);
  }
  seq2seq::Generator generator(argv[1]);
  for (const auto& texts : generator.generate(prompts, options)) {
    for (const seq2seq::Text& text : texts) {
      if (text.token_log_probabilities.size() != text.ids.size()) throw std::runtime_error("a text has another number of log-probabilities");
      for (const float each : text.token_log_probabilities) std::printf(" %.9g", static_cast<double>(each));
      std::puts("");
    }
  }
} catch (const std::exception& exception) {
  std::fprintf(stderr, "%s\n", exception.what());
  return 1;
}
