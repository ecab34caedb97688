/** Matmuls of an encoder layer with given heads. Its programs are built on a device that only records. */
import { layouts } from '../../../specs/index.js'
import type { FloatType } from '../../checkpoint/convert.js'
import type { Manifest } from '../../emit/manifest/manifest.js'
import { assembleBert, bertDims, bertInputs } from '../../models/encoder/bert.js'
import { parseBertConfig } from '../../models/encoder/config.js'
import { findPlan } from '../../program/plans.js'
import { perSite } from '../../quant/sites.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { buildProgram } from '../../runtime/program.js'
import type { Recording } from '../../runtime/recording.js'
import { openSession } from '../../runtime/session.js'
import type { Shape } from '../result.js'
import { syntheticWeights } from '../synthetic.js'

export interface EncoderSizes {
  readonly heads: number
  /** Elements per head. */
  readonly size: number
  readonly shapes: readonly Shape[]
  readonly dtype: FloatType
  readonly plans: readonly string[]
}

/** Size of the vocabulary: no matmul depends on it. */
const words = 8

/** Magnitudes for quantised plans: no matmul depends on them. */
const scales = [perSite(() => 1)]

/** Builds the layer under each plan and shape, every sequence full. @throws usage `plan.*`, `config.*` */
export async function recordEncoder(
  { device, library }: Recording,
  manifest: Manifest,
  { heads, size, shapes, dtype, plans }: EncoderSizes,
): Promise<void> {
  const config = parseBertConfig(
    {
      model_type: 'bert',
      vocab_size: words,
      hidden_size: heads * size,
      num_hidden_layers: 1,
      num_attention_heads: heads,
      intermediate_size: 4 * heads * size,
      max_position_embeddings: Math.max(...shapes.map(({ seq }) => seq)),
      hidden_act: 'gelu',
    },
    `${heads} heads of ${size}`,
  )
  const weights = syntheticWeights(config, dtype)
  const exact = dtype === 'f32' ? weights : syntheticWeights(config, 'f32')
  for (const plan of plans) {
    const model = assembleBert(config, findPlan(plan, manifest.plans), false, scales)
    const prepared = prepareWeights(model.applications, weights, layouts, exact)
    const session = await openSession({ device, library, manifest, layouts, weights: prepared })
    for (const shape of shapes) {
      const dims = bertDims(config, { ...shape, tokens: shape.batch * shape.seq })
      const program = await buildProgram({ session, ...model, inputs: bertInputs, dims, types: { T: dtype } })
      program.release()
    }
    session.release()
  }
}
