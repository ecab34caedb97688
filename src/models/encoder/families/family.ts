/**
 * Differences between families of BERT-like models: the fields of their configurations and the names of their tensors. All families share one program
 * (`specs/programs/bert.ts`); a family is a file in this folder and an entry of `index.ts`.
 */
import type { BertProgram } from '../../../../specs/programs/bert.js'
import type { Activation } from '../../parts/activations.js'
import type { TensorNames } from '../../parts/weight_names.js'

/** Fields of a family's configuration, under this project's names. */
export interface FamilyFields {
  readonly vocab: number
  readonly hidden: number
  readonly layers: number
  readonly heads: number
  readonly inner: number
  /** Length of the longest sequence, in tokens. */
  readonly positions: number
  /** Rows of the checkpoint's position table before that of a sequence's first token. */
  readonly firstPosition: number
  /** Number of token types; 0 if there are none. */
  readonly tokenTypes: number
  readonly eps: number
  readonly activation: Activation
  readonly padToken: number
}

export interface EncoderFamily {
  /** Prefixes of HF's class names, by `model_type`. */
  readonly classes: Readonly<Record<string, string>>
  /** @param name of the file, for messages @throws usage `config.field` */
  fields(config: unknown, name: string): FamilyFields
  /** Prefix of the encoder's tensors in checkpoints with a head; a bare encoder's may have it too. */
  readonly prefix: string
  readonly embeddings: TensorNames
  layer(layer: number): TensorNames
  /** Placement of the layers' norms. */
  readonly norms: BertProgram['norms']
  /** The norm after the last layer, for pre-norm layers. */
  readonly norm?: TensorNames
  /** Pooler that a bare encoder may have. */
  readonly pooler?: TensorNames
  /** Activation after the first dense layer of a sequence classifier. */
  readonly pooling: BertProgram['pooling']
  readonly sequence: TensorNames
  readonly tokens: TensorNames
  readonly span: TensorNames
}
