/** Interface of a tokenizer: the methods of Hugging Face's library in use here, so that other readers can replace it. */

export interface LibraryEncodeOptions {
  readonly add_special_tokens: boolean
  readonly text_pair?: string
  readonly return_token_type_ids?: boolean
}

export interface LibraryDecodeOptions {
  readonly skip_special_tokens: boolean
  /** Null defers to the tokenizer's configuration. */
  readonly clean_up_tokenization_spaces: boolean | null
}

/** Tokens of a text; types only if requested. */
export interface Encoding {
  readonly ids: readonly number[]
  readonly tokens: readonly string[]
  readonly token_type_ids?: readonly number[]
}

export interface TokenLibrary {
  encode(text: string, options: LibraryEncodeOptions): Encoding
  decode(ids: number[], options: LibraryDecodeOptions): string
  token_to_id(token: string): number | undefined
  id_to_token(id: number): string | undefined
}
