/** Forms of an encoder over the same weights: masked by lengths or pairs, with a result per token or per sequence. Made when first needed. */
import type { FloatType } from '../../checkpoint/convert.js'
import type { Manifest } from '../../emit/manifest/manifest.js'
import { usageError } from '../../errors.js'
import type { ModelPlan } from '../../program/index.js'
import { expectPlanTypes } from '../../runtime/plan_types.js'
import { hasPairs, type MaskedCase } from '../parts/masks.js'
import { type Assembly, assemblePairs, assemblePooled, type LayerScales, type Masking, type Pooling } from './bert.js'
import type { BertConfig } from './config.js'

/** Pooling methods of a sequence's token rows. */
export const poolings = ['mean', 'cls', 'last'] as const

export interface PoolingOptions {
  /** The mean of a sequence's tokens, its first token, or its last; the mean by default. Padding and tokens that a mask removes are excluded. */
  readonly pooling?: (typeof poolings)[number] | undefined
  /** True if embeddings are divided by their Euclidean length, so that dot products are cosines. */
  readonly normalize?: boolean | undefined
}

/** An assembly, and the name of its result for the program cache. */
type Form = readonly [Assembly, string]

export interface Forms {
  /** Masked by lengths. */
  readonly plain: Form
  /** Masked by a pair mask. @throws usage `plan.model` for a plan without masked layers */
  pairs(): Form
  /** The form of a batch: masked by lengths if no case has a pair mask. */
  of(batch: readonly MaskedCase[]): Form
  /** Pooled to one row per sequence, with a pair mask if a case has one. @throws usage `plan.model` for a plan without masked layers */
  pooled(pooling: Pooling, batch: readonly MaskedCase[]): Form
}

interface FormSettings {
  readonly config: BertConfig
  readonly plan: ModelPlan
  readonly withPooler: boolean
  readonly scales: LayerScales | undefined
  readonly dtype: FloatType
  readonly manifest: Manifest
  /** FasterTransformer's arithmetic of masks, which every run then uses. */
  readonly masking: Masking | undefined
}

export function formsOf({ config, plan, withPooler, scales, dtype, manifest, masking }: FormSettings, assembly: Assembly): Forms {
  const plain: Form = [assembly, '']
  const pooled = new Map<string, Assembly>()
  const expectTypes = ({ applications }: Assembly): void => expectPlanTypes(plan.name, applications, { T: dtype }, manifest)
  let paired: Assembly | undefined
  const pairs = (): Form => {
    paired ??= assemblePairs(config, plan, withPooler, scales, masking)
    expectTypes(paired)
    return [paired, 'pairs ']
  }
  return {
    plain,
    pairs,
    of: (batch) => (masking !== undefined || hasPairs(batch) ? pairs() : plain),
    pooled(pooling, batch) {
      const masked = masking !== undefined || hasPairs(batch)
      const name = `${masked ? 'pairs ' : ''}${nameOf(pooling)}`
      const known = pooled.get(name) ?? assemblePooled(config, plan, { ...pooling, masked, masking }, scales)
      pooled.set(name, known)
      if (masked) expectTypes(known)
      return [known, name]
    },
  }
}

const heads = { mean: 'mean', cls: 'first', last: 'last' } as const
const nameOf = ({ head, normalize }: Pooling): string => `${head}${normalize ? ' of length one' : ''} `

/** @throws usage `embed.pooling` for an unknown method, which an untyped caller may pass */
export function poolingOf({ pooling = 'mean', normalize = false }: PoolingOptions): Pooling {
  if (!poolings.includes(pooling)) {
    throw usageError('embed.pooling', `pooling is ${JSON.stringify(pooling)}, expected one of ${poolings.join(', ')}`)
  }
  return { head: heads[pooling], normalize }
}
