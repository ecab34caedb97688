/*
 * Interface that all exported generators share, in C: prompts, the choice of words, and destinations of results. The functions are in the header of
 * the export. Ids, lengths and results are host memory; weights are memory of the device. A zeroed heddle_generation chooses the likeliest words.
 */
#ifndef HEDDLE_GENERATE_H
#define HEDDLE_GENERATE_H

#include "export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses in addition to heddle_status and heddle_export_status. */
typedef enum heddle_generate_status {
  HEDDLE_PROMPT = 110,  /* no prompts, an empty one, an id outside of the vocabulary, or a text longer than the model's positions */
  HEDDLE_OPTION = 111,  /* out of its range, incompatible with another, or the export has no program for it */
  HEDDLE_NUMBERS = 112, /* logits or scores that are not numbers: no word can be chosen by them */
  HEDDLE_ORDER = 113    /* no generation has begun */
} heddle_generate_status;

/* Choice of words: the likeliest of each step, drawn, or by beams. */
typedef enum heddle_choice { HEDDLE_GREEDY = 0, HEDDLE_SAMPLE = 1, HEDDLE_BEAMS = 2 } heddle_choice;

/* End of beams. Plain: a finished beam keeps its place and is compared by its sum of log-probabilities (FasterTransformer). HF: finished texts
   leave the beams, and are compared by sum / length^length_penalty. */
typedef enum heddle_beam_rule { HEDDLE_PLAIN = 0, HEDDLE_HF = 1 } heddle_beam_rule;

/* End of a search by the HF rule: when no better text is likely, as soon as there are as many texts as beams, or when no better one is possible. */
typedef enum heddle_early_stopping { HEDDLE_STOP_LIKELY = 0, HEDDLE_STOP_FIRST = 1, HEDDLE_STOP_NEVER = 2 } heddle_early_stopping;

/* Reason that a text ended. */
typedef enum heddle_finish { HEDDLE_END = 0, HEDDLE_LIMIT = 1, HEDDLE_STOPPED = 2 } heddle_finish;

/* Texts to continue, or sources to read: concatenated ids of all texts, and the length of each. */
typedef struct heddle_prompts {
  const int32_t* ids;
  const uint32_t* lengths;
  uint32_t count;
} heddle_prompts;

/*
 * The words of one step, by row: prompt * beams + beam, or the prompt. -1 if the row had ended before. `parents` are the rows that beams continue;
 * null without beams. Both are valid during the call.
 */
typedef struct heddle_chosen {
  uint32_t step, rows;
  const int32_t* words;
  const int32_t* parents;
} heddle_chosen;

typedef struct heddle_generation {
  int32_t choice;          /* heddle_choice */
  uint32_t max_new_tokens; /* 0: 128, but never more than the model has positions for */
  /* Of draws. */
  float temperature; /* 1e-6 to 1e6; 0: 1 */
  uint32_t top_k;    /* number of the likeliest words; 0: all */
  float top_p;       /* the likeliest words with this total probability; 0: all */
  float min_p;       /* words of at least this probability, relative to the likeliest; 0: all */
  const uint64_t* seeds; /* one, or one per prompt; null: 0 */
  uint32_t seed_count;
  /* Of beams. */
  uint32_t beams;         /* of each prompt; 0: 1 */
  uint32_t returned;      /* texts of each prompt, at most as many as beams, best first; 0: 1 */
  int32_t rule;           /* heddle_beam_rule */
  float diversity_rate;   /* of the plain rule: below 0, words of different beams are preferred */
  float length_penalty;   /* of the HF rule; 1 is usual */
  int32_t early_stopping; /* of the HF rule: heddle_early_stopping */
  /* Ids that end a text; null: the model's own. With end_count 0 and a non-null pointer, only the limit ends it. */
  const int32_t* end_ids;
  uint32_t end_count;
  uint32_t chunk; /* tokens of prompts per pass; 0: 2048. Sources are read whole. */
  /* Logits processors, for exports that have them. */
  float repetition_penalty;      /* of words that are in the text, its prompt included; 1e-6 to 1e6; 0: 1 */
  uint32_t no_repeat_ngram_size; /* so many words in sequence are not repeated in a text; 0: all may be */
  uint32_t min_new_tokens;       /* before an end id */
  const int32_t* forced_first;   /* first word of a text, of prompts only after one of a single word; null: free */
  const int32_t* forced_last;    /* last words of texts that reach the limit; null: free */
  uint32_t forced_last_count;
  /* Called after each step; null: none. A result other than 0 ends the generation there. */
  int32_t (*on_step)(void* user, const heddle_chosen* chosen);
  void* user;
} heddle_generation;

/* Destinations of results: of text number prompt * returned + i, in the order of the options. All but ids and lengths may be null. */
typedef struct heddle_texts {
  uint32_t room;            /* capacity of each text in ids, at least max_new_tokens */
  int32_t* ids;             /* [texts, room], without an end id; -1 after the last */
  uint32_t* lengths;        /* [texts] */
  int32_t* finishes;        /* [texts], heddle_finish */
  float* log_probabilities; /* [texts], of beams: their sums; NaN without beams */
  float* scores;            /* [texts], of beams: their sort key; NaN without beams */
  /* [texts, room], of each id, by the model's own logits; NaN after the last. For exports that keep them: their config has "logprobs": true. */
  float* token_log_probabilities;
} heddle_texts;

#ifdef __cplusplus
}
#endif

#endif
