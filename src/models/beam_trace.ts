import type { Decoding } from './decoding.js'
import type { Generation } from './generation_options.js'
import type { Seq2seqConfig } from './seq2seq_config.js'
import type { Hypothesis } from './seq2seq_pipeline.js'
export async function traceBeams(_config: Seq2seqConfig, _decoding: Decoding, _generation: Generation): Promise<Hypothesis[][]> {
  return []
}
