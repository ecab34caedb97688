/** HF `config.json` of BERT and the models of its family: read, checked, and reduced to the fields that assembly needs. */
import { z } from 'zod'
import { checkFields, keysOf, readConfigFile, size } from '../../checkpoint/config_file.js'
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import { expectModelType } from '../parts/model_types.js'
import type { FamilyFields } from './families/family.js'
import { type FamilyName, families } from './families/index.js'

/** Family and prefix of HF's class names, by `model_type`. */
const modelTypes: Readonly<Record<string, { readonly family: FamilyName; readonly classes: string }>> = Object.fromEntries(
  keysOf(families).flatMap((family) =>
    Object.entries(families[family].classes).map(([type, classes]) => [type, { family, classes }]),
  ),
)

const schema = z.looseObject({
  model_type: z.enum(keysOf(modelTypes)),
  architectures: z.array(z.string()).min(1).optional(),
  num_labels: size.optional(),
  id2label: z.record(z.string().regex(/^[0-9]+$/), z.string()).optional(),
})

/** Task of a checkpoint. */
export type BertKind = 'encoder' | 'token-classifier' | 'sequence-classifier' | 'question-answering'

/** Suffixes of classes with masked-language-model heads, which are dropped: only the encoder runs. */
const leftOut = ['ForMaskedLM', 'ForPreTraining']

/** Tasks by suffix of HF's class names. */
const kinds: Readonly<Record<string, BertKind>> = {
  Model: 'encoder',
  ForMaskedLM: 'encoder',
  ForPreTraining: 'encoder',
  ForTokenClassification: 'token-classifier',
  ForSequenceClassification: 'sequence-classifier',
  ForQuestionAnswering: 'question-answering',
}

export interface BertConfig extends FamilyFields {
  readonly family: FamilyName
  readonly kind: BertKind
  /** Class whose head is not run, if the checkpoint has one; the result is states. */
  readonly headless?: string
  readonly headDim: number
  /** Number of classes of a classifier; 2, begin and end, for question answering; 0 for an encoder. */
  readonly classes: number
  /** Names of the classes, if the configuration has them; class 3 without a name is LABEL_3. */
  readonly labels: readonly string[]
}

/** Reads `config.json`. @throws usage `config.read`, `config.json`, and what `parseBertConfig` throws */
export async function readBertConfig(path: string): Promise<BertConfig> {
  return parseBertConfig(await readConfigFile(path), path)
}

/** Checks a parsed configuration; `name` is used in messages. @throws usage `config.field`, `config.heads`, `config.architecture`, `config.labels` */
export function parseBertConfig(value: unknown, name: string): BertConfig {
  expectModelType(value, 'encoder', name)
  const config = checkFields(schema, value, name)
  const type = modelTypes[config.model_type]
  if (type === undefined) throw new Error(`internal: there is no family of ${config.model_type}`)
  const { family, classes } = type
  const fields = families[family].fields(value, name)
  const [architecture = `${classes}Model`] = config.architectures ?? []
  const use = architecture.startsWith(classes) ? architecture.slice(classes.length) : ''
  const kind = getOwn(kinds, use)
  if (kind === undefined) {
    throw usageError('config.architecture', `${name}: architecture ${architecture} is not supported`, {
      hint: `supported for ${config.model_type}: ${Object.keys(kinds)
        .map((end) => `${classes}${end}`)
        .join(', ')}`,
    })
  }
  const { hidden, heads } = fields
  if (hidden % heads !== 0) {
    throw usageError('config.heads', `${name}: hidden size ${hidden} is not a multiple of ${heads} attention heads`)
  }
  const headless = leftOut.includes(use) ? { headless: architecture } : {}
  return { ...fields, family, kind, ...headless, headDim: hidden / heads, ...classesOf(kind, config, name) }
}

/** HF writes no names for the default two classes. None are made up here: the count may be wrong, and the checkpoint is not yet known. */
function classesOf(
  kind: BertKind,
  { id2label, num_labels: count }: Pick<z.output<typeof schema>, 'id2label' | 'num_labels'>,
  name: string,
): Pick<BertConfig, 'classes' | 'labels'> {
  if (kind === 'encoder') return { classes: 0, labels: [] }
  if (kind === 'question-answering') return { classes: 2, labels: [] }
  if (id2label === undefined) return { classes: count ?? 2, labels: [] }
  const labels = Array.from({ length: Object.keys(id2label).length }, (_, i) => {
    const label = id2label[i]
    if (label === undefined) throw usageError('config.labels', `${name}: id2label has no entry ${i}; its keys must count from 0`)
    return label
  })
  return { classes: labels.length, labels }
}
