/** Small models of the BERT family, with the results of HF's tokenizers and models for texts and pairs: see test/peers/make_family.py. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { truncations } from '../../src/text/truncation.js'

const folder = fileURLToPath(new URL('../data/models/family', import.meta.url))

const caseSchema = z.strictObject({
  text: z.string(),
  pair: z.string().optional(),
  /** Truncation of the case, and its number of tokens. */
  truncate: z.enum(truncations).optional(),
  most: z.number().optional(),
  /** True if HF's tokenizer refused this truncation. */
  refused: z.literal(true).optional(),
  input_ids: z.array(z.number()).optional(),
  /** Present if the model distinguishes types. */
  token_type_ids: z.array(z.number()).optional(),
  logits: z.array(z.number()).optional(),
  begins: z.array(z.number()).optional(),
  ends: z.array(z.number()).optional(),
})

export type FamilyCase = z.output<typeof caseSchema>

export const familyNames: readonly string[] = (await readdir(folder)).sort()

export const familyFolder = (name: string): string => join(folder, name)

/** The cases of a model, those that HF refused too. */
export async function familyCases(name: string): Promise<readonly FamilyCase[]> {
  const text = await readFile(join(folder, name, 'golden.json'), 'utf8')
  return z.strictObject({ cases: z.array(caseSchema) }).parse(JSON.parse(text)).cases
}
