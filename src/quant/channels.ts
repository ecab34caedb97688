/**
 * The channels file: the largest magnitude of every channel of the activations whose rows are quantised, and the model they belong to.
 * Written by `heddle calibrate` for a model whose plans quantise rows dynamically; smoothing computes its factors from it.
 */
import { z } from 'zod'
import { usageError } from '../errors.js'
import { readText } from '../files.js'
import type { ModelIdentity } from './identity.js'
import { expectModel } from './scales.js'

const format = 'heddle-channels'
const size = z.int().positive()
const again = 'write it again with `heddle calibrate`'

const schema = z.strictObject({
  format: z.literal(format),
  version: z.literal(1),
  model: z.strictObject({
    ...{ layers: size, hidden: size, heads: size, inner: size },
    digest: z.string().regex(/^[0-9a-f]{64}$/, 'expected a SHA-256 in hexadecimal'),
  }),
  calibration: z.strictObject({ cases: size, tokens: size, dtype: z.enum(['f32', 'f16', 'bf16']) }),
  values: z.record(z.string(), z.array(z.number().nonnegative())),
})

export interface ChannelMaxima {
  readonly model: ModelIdentity
  readonly calibration: z.infer<typeof schema>['calibration']
  /** Maxima per channel, finite and at least 0, by activation: `layer0.gated`. */
  readonly values: Readonly<Record<string, readonly number[]>>
}

/** @throws usage `channels.read`, and what `parseChannels` throws */
export const readChannels = async (path: string): Promise<ChannelMaxima> =>
  parseChannels(await readText(path, { code: 'channels.read', hint: 'write one with `heddle calibrate`' }), path)

/** Parses a channels file; `file` is used in messages. @throws usage `channels.json`, `channels.schema` */
export function parseChannels(text: string, file: string): ChannelMaxima {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('channels.json', `${file} is not JSON`, { hint: again, cause })
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const where = issue?.path.map(String).join('.') || 'the file'
  throw usageError('channels.schema', `${file}: ${where}: ${issue?.message ?? 'not channels'}`, { hint: again })
}

/** Formats a channels file, with a final newline. Equal maxima give equal text. */
export function formatChannels({ model, calibration, values }: ChannelMaxima): string {
  const lines = Object.entries(values).map(([name, maxima]) => `    ${JSON.stringify(name)}: ${JSON.stringify(maxima)}`)
  const head = [
    `"format": ${JSON.stringify(format)}`,
    '"version": 1',
    `"model": ${JSON.stringify(model)}`,
    `"calibration": ${JSON.stringify(calibration)}`,
  ]
  return `{\n${head.map((line) => `  ${line},\n`).join('')}  "values": {\n${lines.join(',\n')}\n  }\n}\n`
}

/** @throws usage `scales.model` naming the difference if channels belong to another model */
export const expectChannels = (channels: ChannelMaxima, wanted: ModelIdentity): void =>
  expectModel(channels, wanted, 'the calibration')
