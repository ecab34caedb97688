/** The module of a project that exports a graph, for source that imports its type. */
import { resolve } from 'node:path'
import { type CallExpression, Node, Project, type VariableDeclaration } from 'ts-morph'
import { slashed } from '../../path_names.js'

export interface ExportedGraph {
  /** Name of the export. */
  readonly name: string
  /** Path of its module. */
  readonly file: string
}

/**
 * Returns the export `const NAME = graph('GRAPH', ...)` of a folder's modules; undefined if there is none, as for a graph in a list. Modules are
 * parsed, neither resolved nor run.
 */
export function exportedGraph(specs: string, graph: string): ExportedGraph | undefined {
  const project = new Project({ skipFileDependencyResolution: true, skipLoadingLibFiles: true })
  for (const source of project.addSourceFilesAtPaths(slashed(`${resolve(specs)}/**/*.ts`))) {
    const found = source.getVariableDeclarations().find((each) => each.isExported() && declares(each, graph))
    if (found !== undefined) return { name: found.getName(), file: source.getFilePath() }
  }
  return undefined
}

function declares(declaration: VariableDeclaration, graph: string): boolean {
  const call = declaration.getInitializer()
  return Node.isCallExpression(call) && call.getExpression().getText() === 'graph' && firstText(call) === graph
}

function firstText(call: CallExpression): string | undefined {
  const [first] = call.getArguments()
  return Node.isStringLiteral(first) || Node.isNoSubstitutionTemplateLiteral(first) ? first.getLiteralText() : undefined
}
