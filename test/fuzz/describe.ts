/**
 * Descriptions of random ops: plain data that is printed as a spec (print.ts), evaluated in float64 (evaluate.ts) and shrunk (shrink.ts). They
 * follow the language and do not depend on the compiler.
 */

export type DType = 'f32' | 'f16' | 'bf16' | 'f8e4m3' | 'f8e5m2' | 'i32' | 'i16' | 'i8' | 'u8' | 'u32' | 'i64' | 'bool'
export type ScalarType = 'f32' | 'i32' | 'bool'

/** The type that a body reads of a storage type. */
export const scalarOf = (dtype: DType): ScalarType => (dtype === 'bool' ? 'bool' : /^(f|bf|i8)/.test(dtype) ? 'f32' : 'i32')

export type Reducer = 'sum' | 'max' | 'min' | 'argmax' | 'argmin'

/** An expression. A name is an index, an extent, an attribute, a const, or a field of one (`best.at`). */
export type Expr =
  | { readonly kind: 'const'; readonly type: 'f32' | 'i32'; readonly value: number }
  | { readonly kind: 'name'; readonly type: ScalarType; readonly name: string }
  | { readonly kind: 'load'; readonly type: ScalarType; readonly tensor: string; readonly at: readonly Expr[] }
  | { readonly kind: 'element'; readonly type: ScalarType; readonly row: string; readonly at: Expr }
  | { readonly kind: 'call'; readonly type: ScalarType; readonly fn: string; readonly args: readonly Expr[] }
  | { readonly kind: 'reduce'; readonly type: 'f32' | 'i32'; readonly fn: Reducer; readonly loop: Loop }

/** An index over a length, and the expression for each element. */
export interface Loop {
  /** A dimension, or a number. */
  readonly length: string | number
  readonly index: string
  readonly value: Expr
}

/** A monoid of an author, declared at the module's level. Its parts read `x.field` and `y.field`. */
export interface MonoidDesc {
  readonly name: string
  readonly fields: readonly {
    readonly name: string
    readonly type: 'f32' | 'i32'
    readonly identity: number
    readonly combine: Expr
  }[]
}

/** A field that a fold carries: a number, or a row. */
export type Field =
  | { readonly is: 'number'; readonly name: string; readonly type: 'f32' | 'i32'; readonly start: Expr; readonly next: Expr }
  | { readonly is: 'row'; readonly name: string; readonly start: Loop; readonly next: Loop }

/** A const of a body. */
export type Stmt =
  | { readonly kind: 'const'; readonly name: string; readonly value: Expr }
  /** Row with consts per element before its value. */
  | { readonly kind: 'row'; readonly name: string; readonly loop: Loop; readonly inner?: readonly Stmt[] }
  | { readonly kind: 'histogram'; readonly name: string; readonly bins: string; readonly loop: Loop }
  | { readonly kind: 'scan'; readonly name: string; readonly loop: Loop }
  | {
      readonly kind: 'monoid'
      readonly name: string
      readonly use: 'reduce' | 'scan'
      readonly monoid: string
      readonly length: string
      readonly index: string
      readonly fields: Readonly<Record<string, Expr>>
    }
  | {
      readonly kind: 'fold'
      readonly name: string
      readonly each: boolean
      readonly length: string
      readonly index: string
      readonly fields: readonly Field[]
      readonly step: readonly Stmt[]
    }
  | { readonly kind: 'topK'; readonly name: string; readonly k: number | string; readonly loop: Loop }
  | { readonly kind: 'argsort'; readonly name: string; readonly most: number; readonly loop: Loop }
  | { readonly kind: 'threshold'; readonly name: string; readonly target: Expr; readonly loop: Loop; readonly weight: Expr }
  | {
      readonly kind: 'segmentSum'
      readonly name: string
      readonly segment: Expr
      /** The boundary `index`. */
      readonly offset: { readonly index: string; readonly value: Expr }
      readonly loop: Loop
    }

export type Result =
  | { readonly kind: 'number'; readonly value: Expr }
  | { readonly kind: 'row'; readonly loop: Loop }
  | { readonly kind: 'histogram'; readonly bins: string; readonly loop: Loop }

/** Allowed values of an input. */
export type Domain =
  | { readonly kind: 'float' }
  | { readonly kind: 'unit' }
  | { readonly kind: 'int'; readonly from: number; readonly to: number }
  | { readonly kind: 'index'; readonly of: string }
  | { readonly kind: 'bits' }
  | { readonly kind: 'flag' }
  /** Length from 0, or from the given value, to a dimension. */
  | { readonly kind: 'length'; readonly of: string; readonly least: number }

export interface TensorDesc {
  readonly name: string
  readonly dtype: DType
  readonly dims: readonly string[]
  readonly layout?: 'column' | 'padded'
}
export interface InputDesc extends TensorDesc {
  readonly domain: Domain
}
export interface OutputDesc extends TensorDesc {
  readonly result: Result
  readonly updates?: string
}

/** A dimension, and its lengths: any, a few, one, or derived from another dimension. */
export type DimDesc =
  | { readonly name: string; readonly size: 'rows' | 'row' | 'few' | 'ranked' | 'carried'; readonly most?: number }
  | { readonly name: string; readonly size: 'fixed'; readonly at: number }
  | { readonly name: string; readonly size: 'derived'; readonly of: string; readonly times: number; readonly plus: number }

export interface AttrDesc {
  readonly name: string
  readonly type: 'f32' | 'i32'
  readonly initial: number
  readonly given: number
}

export interface OpDesc {
  readonly name: string
  /** The family that drew it. */
  readonly family: string
  readonly dims: readonly DimDesc[]
  /** The storage type of the parameter `T`, if there is one. */
  readonly param?: DType
  readonly inputs: readonly InputDesc[]
  readonly attrs: readonly AttrDesc[]
  /** Row indices: a name and the dimension it runs over. */
  readonly rows: readonly { readonly index: string; readonly dim: string }[]
  readonly monoids: readonly MonoidDesc[]
  readonly body: readonly Stmt[]
  readonly outputs: readonly OutputDesc[]
}

export const num = (value: number): Expr => ({ kind: 'const', type: 'f32', value })
export const whole = (value: number): Expr => ({ kind: 'const', type: 'i32', value })
export const named = (name: string, type: ScalarType = 'i32'): Expr => ({ kind: 'name', type, name })
export const call = (type: ScalarType, fn: string, ...args: readonly Expr[]): Expr => ({ kind: 'call', type, fn, args })
export const load = (type: ScalarType, tensor: string, ...at: readonly Expr[]): Expr => ({ kind: 'load', type, tensor, at })
export const element = (type: ScalarType, row: string, at: Expr): Expr => ({ kind: 'element', type, row, at })
export const reduce = (fn: Reducer, length: string | number, index: string, value: Expr): Expr => ({
  kind: 'reduce',
  type: fn.startsWith('arg') || value.type === 'i32' ? 'i32' : 'f32',
  fn,
  loop: { length, index, value },
})
