/**
 * What sets a family of BERT-like models apart: the words of its configurations and the names of its tensors. All of them are one
 * program (`specs/programs/bert.ts`); a family is a file beside this one and an entry of `index.ts`.
 */
import type { BertProgram } from '../../../../specs/programs/bert.js'
import type { Activation } from '../../parts/activations.js'
import type { TensorNames } from '../../parts/weight_names.js'

/** What configurations of a family say, in this project's words. */
export interface FamilyFields {
  readonly vocab: number
  readonly hidden: number
  readonly layers: number
  readonly heads: number
  readonly inner: number
  /** Tokens of the longest sequence. */
  readonly positions: number
  /** Rows of the checkpoint's table of positions in front of that of a sequence's first token. */
  readonly firstPosition: number
  /** 0 where tokens have no types. */
  readonly tokenTypes: number
  readonly eps: number
  readonly activation: Activation
  readonly padToken: number
}

export interface EncoderFamily {
  /** Beginnings of the names of HF's classes, by `model_type`. */
  readonly classes: Readonly<Record<string, string>>
  /** @param name of the file, for messages @throws usage `config.field` */
  fields(config: unknown, name: string): FamilyFields
  /** In front of the encoder's own tensors in checkpoints that have a head; those of a bare encoder may have it too. */
  readonly prefix: string
  readonly embeddings: TensorNames
  layer(layer: number): TensorNames
  /** Where norms of layers stand. */
  readonly norms: BertProgram['norms']
  /** The norm behind the last layer, where those of layers stand in front. */
  readonly norm?: TensorNames
  /** Where a bare encoder may have a pooler. */
  readonly pooler?: TensorNames
  /** What follows the first dense layer of a classifier of sequences. */
  readonly pooling: BertProgram['pooling']
  readonly sequence: TensorNames
  readonly tokens: TensorNames
  readonly span: TensorNames
}
