/**
 * Sources of the package's modules. An installed package has declaration files, which hold neither bodies nor values, so names of `heddle/std` and
 * `heddle/specs` are resolved in the sources that ship next to them.
 */

/** The package's folder, and the path of the module below it. */
const declaration = /^(.*)\/dist\/types\/((?:src\/std|specs)\/.*)\.d\.ts$/

/** The path of the module that a declaration file of the package was generated from; undefined for any other file. */
export function sourceOf(path: string): string | undefined {
  const [, folder, module] = declaration.exec(path) ?? []
  return module === undefined ? undefined : `${folder}/${module}.ts`
}
