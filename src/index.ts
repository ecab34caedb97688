/**
 * What `import ... from 'heddle'` offers: the language. Importing it needs no GPU and no compiler.
 *
 * @module heddle
 */
export * from './errors.js'
export * from './lang/index.js'
