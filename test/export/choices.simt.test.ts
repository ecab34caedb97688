/** Matmuls that the library runs at some numbers of rows and a kernel at others: the table of an export, and the choice of its runtime. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { conversions, graphs, layouts, programs } from '../../specs/index.js'
import { namesOf } from '../../src/export/header.js'
import { keysOf, lower, resolve } from '../../src/export/index.js'
import { sourceText } from '../../src/export/source.js'
import type { ProgramDecl } from '../../src/lang/program/program.js'
import { findCxx, readManifestOf, runTool } from '../../src/toolchain/index.js'
import { repository } from '../cli/host.js'

const generated = await readManifestOf(`${repository}/generated`)
const declarations = { graphs, programs: Object.values<ProgramDecl>(programs), conversions }

/** The manifest with sizes for which the int8 matmul was measured to be faster. */
const measured = (length: number, depth: number) => ({
  ...generated,
  kernels: generated.kernels.map((entry) =>
    entry.op === 'int8_matmul'
      ? {
          ...entry,
          measured: [
            { architecture: 'sm_90', length, depth, fromRows: 4, toRows: 9 },
            { architecture: 'sm_80', length, depth, fromRows: 20 },
          ],
        }
      : entry,
  ),
})

describe('an export', () => {
  it('has the table of its matmuls, and the kernels in it, for the weights it is of', () => {
    const exported = (length: number, depth: number) => {
      const options = { dtype: 'f32', manifest: measured(length, depth), declarations, layouts, dims: {} } as const
      const found = resolve('llama_step', { ...options, plan: 'fasterllama-v1', config: { layers: 1 } })
      const lowered = lower({ ...options, ...found })
      const keys = lowered.steps.flatMap(keysOf)
      return { lowered, keys }
    }
    const { lowered, keys } = exported(4096, 4096)
    expect(keys).toContain('int8_matmul')
    const tuned = lowered.steps.filter(({ choices = [] }) => choices.length > 0)
    expect(tuned.length).toBeGreaterThan(1)
    expect(sourceText(lowered, namesOf(lowered))).toContain(
      '{{heddle_launch_int8_matmul, "sm_90", 4096, 4096, 4, 9}, {heddle_launch_int8_matmul, "sm_80", 4096, 4096, 20, INT64_MAX}}',
    )
    expect(exported(4096, 4095).keys).not.toContain('int8_matmul')
  })
})

const folders: string[] = []
afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))))

/** A program of one matmul, and a kernel that writes 7 instead of the library's result. */
const source = `#include <cstdio>
#include <string>
#include "program.hpp"
using namespace heddle::exported;
static int32_t sevens(const heddle_launch* launch, heddle_error*) {
  const int64_t m = launch->dims[0], n = launch->dims[1];
  for (int64_t i = 0; i < m * n; ++i) static_cast<int32_t*>(launch->buffers[2].data)[i] = 7;
  return launch->dim_count == 3 && launch->dims[2] == 2 && launch->buffer_count == 3 ? 0 : 1;
}
static void measure(const int64_t* dims, Measure& measured) {
  const Size m = dims[0], n = 3, k = 2, one = 1, none = 0;
  measured.bytes = {m * k, n * k, m * n * 4};
  measured.numbers = {one, m, n, k, none, k, one, none, k, one, none, n, one};
  measured.most = {0};
}
int main(int count, char** rows) {
  Model model = {"matmul", {"m"}, {}, {"a", "b"}, {"y"}, {}, {{Home::input, 0, 0, 0}, {Home::input, 1, 0, 0}, {Home::output, 0, 0, 0}},
                 {{Kind::matmul, "y", nullptr, {0, 1, 2}, {}, 0, 13, {4, 4, 3}, -1, -1, 0,
                   {{sevens, "sm_90", 3, 2, 4, 5}, {sevens, "sm_80", 3, 1, 1, 99}}}}, {}, {}, false, measure};
  heddle_error error = {};
  Program* program = nullptr;
  if (Program::create(model, nullptr, 0, &program, &error) != 0) return 1;
  alignas(16) int8_t a[64], b[64];
  alignas(16) int32_t y[64];
  for (int i = 0; i < 64; ++i) a[i] = b[i] = 1;
  for (int i = 1; i < count; ++i) {
    const int64_t m = std::stoi(rows[i]);
    const void* inputs[] = {a, b};
    void* outputs[] = {y};
    if (program->run({&m, inputs, outputs, nullptr, 0, nullptr, 0, nullptr}, &error) != 0) return 1;
    std::printf("%d ", y[3 * m - 1]);
  }
  delete program;
}
`

describe('the runtime of exports', () => {
  it('launches the kernel for the rows in the table, and the library for others', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'heddle-choices-'))
    folders.push(folder)
    await writeFile(join(folder, 'main.cpp'), source)
    const { path: cxx } = (await findCxx()) ?? { path: 'c++' }
    const native = join(repository, 'native')
    const include = ['export', 'include', 'simt/include', 'simt/plugin'].flatMap((name) => ['-I', join(native, name)])
    const sources = [
      ...['program', 'place', 'weights', 'backend_simt'].map((name) => join(native, `export/${name}.cpp`)),
      ...['matmul', 'workers'].map((name) => join(native, `simt/plugin/${name}.cpp`)),
    ]
    const built = join(folder, 'choices')
    const arguments_ = ['-std=c++17', '-O0', ...include, join(folder, 'main.cpp'), ...sources, '-pthread', '-o', built]
    expect(await runTool(cxx, arguments_, {})).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await runTool(built, ['3', '4', '5', '6'], {})).toMatchObject({ exitCode: 0, stdout: '2 7 7 2 ' })
  })
})
