/** Names of the layer graphs that models repeat, by configuration. A plan must cover them to run the model. */
import { decoderLayers } from '../../../specs/graphs/decoder_layer.js'
import { encoderLayers } from '../../../specs/graphs/encoder_layers.js'
import { llamaLayer } from '../../../specs/graphs/llama_layer.js'
import type { PlannedGraphs } from '../../emit/manifest/graphs.js'
import { findPlan, planNames } from '../../program/plans.js'
import type { BertConfig } from '../encoder/config.js'
import { families } from '../encoder/families/index.js'
import type { LlamaConfig } from '../llama/config.js'
import { flagsOf } from '../llama/programs.js'
import type { Seq2seqConfig } from '../seq2seq/seq2seq_config.js'

/** Names of the graphs that a BERT repeats. */
export const bertLayers = ({ family, activation }: Pick<BertConfig, 'family' | 'activation'>): readonly string[] => [
  encoderLayers[families[family].norms][activation].name,
]

/** Names of the plans that cover a BERT layer; others are for other models. */
export function bertPlans(planned: PlannedGraphs = {}): readonly string[] {
  const layers = Object.values(encoderLayers).flatMap((form) => Object.values(form))
  return planNames(planned).filter((plan) => {
    const { covers } = findPlan(plan, planned)
    return layers.some(({ name }) => covers(name))
  })
}

/** Names of the graphs that an encoder-decoder model repeats. */
export function seq2seqLayers({ preNorm, activation }: Pick<Seq2seqConfig, 'preNorm' | 'activation'>): readonly string[] {
  const form = preNorm ? 'pre' : 'post'
  return [encoderLayers[form][activation].name, decoderLayers[form][activation].name]
}

/** Names of the graphs that a LLaMA-like model repeats, in both forms. */
export function llamaLayers(config: LlamaConfig): readonly string[] {
  const flags = [...new Set(config.windowLayers)].map((window) => flagsOf(config, window))
  return flags.flatMap((each) => (['prompt', 'step'] as const).map((form) => llamaLayer(form, each).name))
}
