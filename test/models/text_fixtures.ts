/** Tokenizers of the kinds that LLaMA-like models have. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadTokenizer, type Tokenizer } from '../../src/text/tokenizer.js'

/** Byte-level, as Llama 3, Qwen and SmolLM have it. */
export const kjvGqa = fileURLToPath(new URL('../data/models/kjv-gqa', import.meta.url))

const special = ['<unk>', '<s>', '</s>']
const words = ['▁', '▁▁', 'a', 'b', '▁the', '▁a', 'ing', '日', '\uFFFD', '🙂', '.', '▁,']
const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`)
const vocab = Object.fromEntries([...special, ...bytes, ...words].map((token, id) => [token, id]))

const marks = {
  Strip: {
    type: 'Sequence',
    decoders: [
      { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
      { type: 'ByteFallback' },
      { type: 'Fuse' },
      { type: 'Strip', content: ' ', start: 1, stop: 0 },
    ],
  },
  Metaspace: { type: 'Metaspace', replacement: '▁', add_prefix_space: true, prepend_scheme: 'always' },
} as const

/** A folder with a tokenizer as SentencePiece makes them: Llama 1 and 2, Mistral, Phi-3. */
export async function withSentencePiece<T>(decoder: keyof typeof marks, work: (tokenizer: Tokenizer) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'heddle-text-'))
  const definition = {
    version: '1.0',
    added_tokens: special.map((content, id) => ({
      id,
      content,
      special: true,
      normalized: false,
      lstrip: false,
      rstrip: false,
      single_word: false,
    })),
    normalizer: {
      type: 'Sequence',
      normalizers: [
        { type: 'Prepend', prepend: '▁' },
        { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
      ],
    },
    pre_tokenizer: null,
    post_processor: null,
    decoder: marks[decoder],
    model: { type: 'BPE', unk_token: '<unk>', fuse_unk: true, byte_fallback: true, vocab, merges: [] },
  }
  try {
    await writeFile(join(dir, 'tokenizer.json'), JSON.stringify(definition))
    return await work(await loadTokenizer(dir))
  } finally {
    await rm(dir, { recursive: true })
  }
}

export const sentencePieceVocab = Object.keys(vocab).length
/** The id of a token of `withSentencePiece`. */
export const idOf = (token: string): number => vocab[token] ?? -1
