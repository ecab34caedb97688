/**
 * Exports of `heddle`: the language. Importing it needs no GPU and no compiler.
 *
 * @module heddle
 */
export * from './errors.js'
export * from './lang/index.js'
