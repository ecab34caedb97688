/** C++ example of an exported generator: reads prompts of token ids from a file, one per line, and writes texts to standard output. */
import type { LoweredGenerator } from './generator.js'

export const generatorExample = ({
  parts: { name },
}: LoweredGenerator): string => `// Generates texts: example WEIGHTS PROMPTS [option=number ...]. A line of the file PROMPTS is a prompt, ids with blanks between them. A line of the
// output is a text: the number of its prompt, how it ended (0: an end id, 1: the limit, 2: stopped), its sum of log-probabilities and its score
// (of beams), and its ids. stream=n prints the words of each of the first n steps, and stops there.
#include <cstdio>
#include <sstream>

#include "${name}.hpp"

void set(${name}::Options& options, const std::string& option, const std::string& value) {
  const auto whole = [&] { return static_cast<uint32_t>(std::stoul(value)); };
  if (option == "choice") options.choice = std::stoi(value);
  else if (option == "max_new_tokens") options.max_new_tokens = whole();
  else if (option == "temperature") options.temperature = std::stof(value);
  else if (option == "top_k") options.top_k = whole();
  else if (option == "top_p") options.top_p = std::stof(value);
  else if (option == "min_p") options.min_p = std::stof(value);
  else if (option == "seed") options.draw_seeds.push_back(std::stoull(value));
  else if (option == "beams") options.beams = whole();
  else if (option == "returned") options.returned = whole();
  else if (option == "rule") options.rule = std::stoi(value);
  else if (option == "diversity_rate") options.diversity_rate = std::stof(value);
  else if (option == "length_penalty") options.length_penalty = std::stof(value);
  else if (option == "early_stopping") options.early_stopping = std::stoi(value);
  else if (option == "chunk") options.chunk = whole();
  else if (option != "stream") throw std::runtime_error("there is no option " + option);
  else options.on_words = [last = whole()](const heddle_chosen& chosen) {
    for (uint32_t row = 0; row < chosen.rows; ++row) std::printf("%s%d", row == 0 ? "words " : " ", chosen.words[row]);
    std::puts("");
    return chosen.step + 1 < last;
  };
}

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: example WEIGHTS PROMPTS [option=number ...]");
  ${name}::Options options;
  for (const std::string& argument : std::vector<std::string>(argv + 3, argv + argc)) {
    const size_t at = std::min(argument.find('='), argument.size() - 1);
    set(options, argument.substr(0, at), argument.substr(at + 1));
  }
  std::vector<std::vector<int32_t>> prompts;
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    prompts.emplace_back();
    for (int32_t id = 0; words >> id;) prompts.back().push_back(id);
  }
  ${name}::Generator generator(argv[1]);
  const auto texts = generator.generate(prompts, options);
  for (size_t prompt = 0; prompt < texts.size(); ++prompt) {
    for (const ${name}::Text& text : texts[prompt]) {
      std::printf("%zu %d %.9g %.9g", prompt, text.finish, static_cast<double>(text.log_probability), static_cast<double>(text.score));
      for (const int32_t id : text.ids) std::printf(" %d", id);
      std::puts("");
    }
  }
} catch (const std::exception& exception) {
  std::fprintf(stderr, "%s\\n", exception.what());
  return 1;
}
`
