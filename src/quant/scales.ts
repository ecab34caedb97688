/**
 * The scales file: the magnitude that maps to 127 per layer and site, the model they belong to, and the method that chose them. Written
 * by `heddle calibrate` and read to run a model in INT8. Its text is stable, so that it can be compared and committed.
 */
import { z } from 'zod'
import { type HeddleError, usageError } from '../errors.js'
import { readText } from '../files.js'
import type { ModelIdentity } from './identity.js'
import { type PerSite, perSite, type Site, sites } from './sites.js'
import { methodNames } from './thresholds.js'
import { checkWeightMaxima, matrices, type WeightMaxima } from './weight_maxima.js'

const format = 'heddle-scales'
const size = z.int().positive()

const headSchema = z.object({
  format: z.literal(format),
  version: z.literal(1),
  model: z.strictObject({
    layers: size,
    hidden: size,
    heads: size,
    inner: size,
    norms: z.literal('pre').optional(),
    digest: z.string().regex(/^[0-9a-f]{64}$/, 'expected a SHA-256 in hexadecimal'),
  }),
  method: z.strictObject({
    /** `imported` scales were chosen elsewhere, such as by quantisation-aware training. */
    name: z.enum([...methodNames, 'imported']),
    percentile: z.number().gt(0).lte(100).optional(),
  }),
  /** Calibration run; absent for imported scales. */
  calibration: z.strictObject({ cases: size, tokens: size, dtype: z.enum(['f32', 'f16', 'bf16']) }).optional(),
})

/** Layers are checked one by one, so that messages name layer and site. */
const layersSchema = z.array(z.record(z.string(), z.unknown())).min(1)
const fileSchema = headSchema.extend({ layers: layersSchema, weights: layersSchema.optional() }).strict()

export interface Scales {
  readonly model: ModelIdentity
  readonly method: { readonly name: z.infer<typeof headSchema>['method']['name']; readonly percentile?: number | undefined }
  readonly calibration?: z.infer<typeof headSchema>['calibration']
  /** Magnitudes that map to 127, finite and at least 0. 0 quantises everything to 0. */
  readonly layers: readonly PerSite<number>[]
  /** The same for the weights of each layer. Undefined if every output channel is scaled by its own largest weight. */
  readonly weights?: readonly WeightMaxima[] | undefined
}

/** @throws usage `scales.read`, and what `parseScales` throws */
export async function readScales(path: string, model?: ModelIdentity): Promise<Scales> {
  return parseScales(await readText(path, { code: 'scales.read', hint: 'write one with `heddle calibrate`' }), path, model)
}

/**
 * Parses a scales file; `file` is used in messages. With `model`, scales of any other model are refused.
 * @throws usage `scales.json`, `scales.schema`, `scales.layers`, `scales.site`, `scales.value`, `scales.chain`, `scales.weights`, `scales.model`
 */
export function parseScales(text: string, file: string, model?: ModelIdentity): Scales {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('scales.json', `${file} is not JSON`, { hint: 'write it again with `heddle calibrate`', cause })
  }
  const parsed = fileSchema.safeParse(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw usageError(
      'scales.schema',
      `${file}: ${issue?.path.map(String).join('.') || 'the file'}: ${issue?.message ?? 'not scales'}`,
      {
        hint: 'write it again with `heddle calibrate`',
      },
    )
  }
  const { layers, weights, format: _, version: __, ...head } = parsed.data
  const given = weights?.map((layer, i) => checkWeightMaxima(layer, i, { model: head.model, file }))
  const sites = layers.map((layer, i) => checkSites(layer, i, file))
  const scales = checkScales({ ...head, layers: sites, ...(given === undefined ? {} : { weights: given }) }, file)
  if (model !== undefined) expectModel(scales, model, file)
  return scales
}

/** Checks that a layer has every site and nothing else. */
function checkSites(layer: Readonly<Record<string, unknown>>, at: number, file: string): PerSite<number> {
  const unknown = Object.keys(layer).find((name) => !(sites as readonly string[]).includes(name))
  if (unknown !== undefined) {
    throw usageError('scales.site', `${file}: layer ${at} has a scale for ${unknown}, which is not a site`, {
      hint: `sites: ${sites.join(', ')}`,
    })
  }
  return perSite((site) => {
    const value = layer[site]
    if (value === undefined || value === null) {
      throw usageError('scales.site', `${file}: layer ${at} has no scale for ${site}`, { hint: `sites: ${sites.join(', ')}` })
    }
    return typeof value === 'number' ? value : refuseValue(file, at, site, value)
  })
}

const refuseValue = (file: string, layer: number, site: Site, value: unknown): never => {
  throw usageError('scales.value', `${file}: layer ${layer}, ${site}: the scale is ${JSON.stringify(value) ?? String(value)}`, {
    hint: 'a scale is the largest magnitude of the activation: a finite number that is at least 0',
  })
}

/** Relative tolerance between the two scales of one activation: the rounding of a list in float32. */
const sameActivation = 1e-6

/**
 * Checks scales against every rule, and returns them.
 * @throws usage `scales.layers`, `scales.value`, `scales.chain`, `scales.weights` naming file, layer and site
 */
export function checkScales(scales: Scales, file: string): Scales {
  const { layers, weights, model } = scales
  for (const [at, layer] of weights?.entries() ?? []) checkWeightMaxima(layer, at, { model, file })
  if (weights !== undefined && weights.length !== model.layers) {
    throw usageError('scales.layers', `${file}: maxima of weights for ${weights.length} layers, the model has ${model.layers}`)
  }
  if (layers.length !== model.layers) {
    throw usageError('scales.layers', `${file}: scales of ${layers.length} layers, the model has ${model.layers}`)
  }
  for (const [at, layer] of layers.entries()) {
    for (const site of sites) {
      const value = layer[site]
      if (!Number.isFinite(value) || value < 0) refuseValue(file, at, site, Number.isNaN(value) ? 'NaN' : value)
    }
    const next = layers[at + 1]
    // The output of a pre-norm layer is not the result of a norm.
    if (model.norms === 'pre' || next === undefined || Math.abs(next.x - layer.outputNorm) <= sameActivation * layer.outputNorm)
      continue
    throw usageError(
      'scales.chain',
      `${file}: outputNorm of layer ${at} is ${layer.outputNorm}, x of layer ${at + 1} is ${next.x}: they are the same activation`,
      { hint: 'give both the same scale' },
    )
  }
  return scales
}

/** @throws usage `scales.model` naming the difference if scales belong to another model */
export function expectModel({ model }: Pick<Scales, 'model'>, wanted: ModelIdentity, file: string): void {
  const differs = (['layers', 'hidden', 'heads', 'inner', 'digest'] as const).find((field) => model[field] !== wanted[field])
  if (differs === undefined) return
  throw otherModel(differs, model, wanted, file)
}

function otherModel(field: keyof ModelIdentity, found: ModelIdentity, wanted: ModelIdentity, file: string): HeddleError {
  const what =
    field === 'digest'
      ? `weights ${found.digest.slice(0, 12)}, this model has ${wanted.digest.slice(0, 12)}`
      : `${field} ${found[field]}, this model has ${wanted[field]}`
  return usageError('scales.model', `${file}: the scales belong to a model with ${what}`, {
    hint: 'calibrate this model, or name the one they were made for',
  })
}

/** Formats a scales file, with a final newline. Equal scales give equal text. */
export function formatScales(scales: Scales): string {
  const { model, method, calibration, layers, weights } = checkScales(scales, 'scales')
  const head = headSchema.parse({ format, version: 1, model, method, calibration })
  const text = JSON.stringify({ ...head, layers: layers.map((layer) => perSite((site) => layer[site])) }, null, 2)
  if (weights === undefined) return `${text}\n`
  const lines = weights.map((layer) => {
    const given = matrices.flatMap((matrix) => {
      const maxima = layer[matrix]
      return maxima === undefined ? [] : `      ${JSON.stringify(matrix)}: ${JSON.stringify(maxima)}`
    })
    return given.length === 0 ? '    {}' : `    {\n${given.join(',\n')}\n    }`
  })
  // One line per matrix, because there are many channels.
  return `${text.slice(0, -2)},\n  "weights": [\n${lines.join(',\n')}\n  ]\n}\n`
}
