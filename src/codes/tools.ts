/** Error codes of verbs: building, benches, pages, exports, bundles, and the machine's tools. */
import { texts } from './text.js'

export const toolCodes = texts({
  'bench.algorithms':
    'A tuning file has no algorithms that could be timed here. | It has none, or those of another GPU or version of cuBLASLt. | Run heddle tune --library on this machine.',
  'bench.baseline':
    'Times cannot be compared with the file given. | It was not written by --save, or has other plans and shapes. | Write one with --save for the same plans and shapes.',
  'bench.config':
    'A bench has no configuration it can use. | The name is neither a known one nor a model folder, or belongs to another program. | Write one that the hint lists, or a folder with config.json.',
  'bench.invariant':
    'A shape does not fit into the rows of invariant runs. | The option allows fewer rows than the batch has. | Give more rows, or a smaller shape.',
  'bench.lengths':
    'Lengths of sequences cannot be read. | The option names no file of numbers. | Give full, half or a file with one length per line.',
  'bench.name':
    'A bench is given nothing to time. | No kernel, graph or model is named. | Name one: heddle bench rms_norm --shape m=512,n=768.',
  'bench.peer':
    'A framework cannot run the request. | It has no setting for an option of the bench. | Leave --peer or the option out.',
  'bench.plans':
    'A plan cannot be timed here. | A kernel has no plans, or the plan needs scales that only a model has. | Time a graph, or a model with heddle bench encoder.',
  'bench.repeats':
    'There are too few times to detect a difference. | The rank test needs more of them for the given threshold. | Give more with --repeats.',
  'bench.report':
    'The report cannot be written. | The folder does not exist, or is not writable. | Name a file in a folder that exists.',
  'bench.save': 'Times cannot be saved. | The folder does not exist, or is not writable. | Name a file in a folder that exists.',
  'bench.shape':
    'A shape cannot be timed. | It has an unknown dimension, or is longer than the positions of the model. | Give dimensions that the hint lists, within the positions.',
  'bench.slower':
    'The timed subject is slower than the baseline. | The median is beyond the threshold, and not by chance. | Find the step that changed with heddle explore --bench, with both files.',
  'bench.unknown':
    'There is nothing of that name to time. | It is misspelt, or not exported. | Write a kernel, graph or program that the message lists.',
  'bench.weights':
    'A bench needs a checkpoint and has none. | The configuration is a name, not a folder. | Name a model folder with --config.',
  'bench.window':
    'The window of a bench is not a multiple of a replay. | A replay has several steps. | Give a multiple of the steps that the message names.',
  'build.architecture':
    'Code cannot be built for this architecture alone. | It is misspelt, or older or newer than the architectures with their own code. | Use native, all, or one that the hint names.',
  'build.check':
    'heddle build --check does not combine with another option or target. | It compiles CUDA sources and builds nothing. | Run heddle build --target cuda --check.',
  'build.compile':
    'The compiler refuses a generated source. | A defect of heddle, an edited device header, or a compiler that is too old. | heddle repro writes the source as a folder; report it with the message of the compiler.',
  'build.early':
    'A kernel with an early start reads memory that earlier launches may still write. | A load, or the release of the next launch, is before the first wait in its machine code. | Read it after wait_for_producers(), or as a constant.',
  'build.filter':
    'The filter of a build is not a regular expression. | Brackets or signs that are not closed. | Escape them, or write a plain part of the key.',
  'build.generated':
    'There is no generated source to build. | heddle gen was not run, or its last run failed. | Correct the specs, and run heddle gen.',
  'build.link':
    'Kernels cannot be linked into a library. | The disk is full, or objects of the cache are damaged. | Run heddle clean, and build again.',
  'build.native':
    'The addon and device plugins cannot be built. | A compiler, CMake or headers are missing. | Run heddle doctor to see what the machine lacks.',
  'build.record':
    'The resources of a compiled source differ from generated/resources.jsonl. | Sources, headers or flags changed after the record was written, or the record was edited. | Run heddle build --target cuda --check --record.',
  'build.report': 'A build report cannot be read. | It was written by another version. | Run heddle clean, then build again.',
  'build.selection':
    'A build selects no kernel. | The filter or model matches nothing. | Kernels have names such as the hint shows.',
  'build.shared':
    'A kernel declares more static shared memory than a block is granted. | Its rows, tiles or reductions together need more than 48 KiB. | Give the kernel smaller arrays in shared memory: shorter rows that are kept, or fewer reductions in one op.',
  'build.size':
    'Compiled kernels are larger than the limit. | They have many architectures, storage types or sizes. | Build fewer of them, or raise --limit-kb.',
  'build.spill':
    'A kernel needs more registers than available, and spills them to memory. | Its schedule keeps too many values of a row. | Give the kernel a schedule that keeps fewer values in registers.',
  'bundle.architecture':
    'A bundle needs kernels for all architectures. | They were built for this GPU alone. | Run heddle build --target cuda --architecture all.',
  'bundle.glibc':
    'A file of the bundle needs a newer C library than target machines may have. | A new symbol is not covered by the shim. | Add it to native/portable/glibc.cpp.',
  'bundle.missing': 'A part of the bundle is not built. | heddle build was not run. | Run heddle build.',
  'bundle.model': 'A model of the bundle is not a model folder. | It has no config.json. | Name a model folder.',
  'bundle.objdump': 'objdump is missing. | binutils are not installed. | Install binutils.',
  'bundle.size': 'A bundle is larger than allowed. | It contains too many kernels or models. | Leave some out.',
  'bundle.stale':
    'The built kernels that a bundle would pack do not match the sources. | heddle gen wrote new ones, or a header was edited, after the last build. | Run heddle build for the target of the message.',
  'bundle.strip': 'strip is missing. | binutils are not installed. | Install binutils.',
  'bundle.tool': 'A tool that makes the bundle failed. | The message quotes it. | Follow its message.',
  'bundler.browser':
    'A bundle for browsers contains a part of heddle that runs in Node. | A module that calls kernels is imported by code of the page. | Call kernels in code of the server.',
  'cache.foreign':
    'Others can write to the cache, and its content would run as you. | Another user owns the folder, or its group or all others may write to it. | Name your own folder with HEDDLE_CACHE, or remove the named one; if nobody else has written to it, chmod 700 makes it yours.',
  'cache.full':
    'A disk is full. | Generated and compiled files take the remaining space. | Free space, or name another folder for the cache with HEDDLE_CACHE.',
  'cache.limit':
    'The limit of the cache is not a size. | HEDDLE_CACHE_LIMIT is not a positive number. | Give a number of MiB, such as 4096.',
  'cache.write':
    'A folder of the project or the cache cannot be written. | It belongs to another user or is read-only. | Make it writable, or name another cache with HEDDLE_CACHE.',
  'check.filter':
    'The filter of a check is not a regular expression. | Brackets or signs that are not closed. | Escape them, or write a plain part of the name.',
  'check.selection':
    'A check selects nothing. | A name is misspelt, a plan belongs to another graph, or the filter matches nothing. | Write a name that the hint lists.',
  'check.untried':
    'A check has nothing to compare. | No size within the facts is small enough to be tried, no output is certain, or a body reads by a relation of extents that no fact states. | State the fact that the message names, or facts that allow smaller extents; or call the kernel at its own sizes.',
  'cli.unfinished':
    'The process ends before the verb has a result. | It waits for something that never comes: a spec module awaits a promise that never settles, or a defect of heddle. | Check what spec modules await; otherwise run it again, and report it with its output.',
  'cli.usage':
    'The command line is invalid. | A misspelt verb or option, or a value that is not allowed. | See heddle help with the verb.',
  'config.nothing': 'heddle config was asked for nothing. | Neither --includes nor --flags is given. | Give one, or both.',
  'cost.device':
    'There is no cost model of the device. | Only some GPUs have one. | Name a device that the hint lists, or measure: heddle doctor --probe.',
  'explain.code':
    'There is no such error code. | It is misspelt, or from another version. | Codes look like HED103 or plan.node.',
  'explain.page': 'The page of error codes is missing. | The portable bundle does not contain it. | Use the npm package.',
  'explore.bench':
    'Files of benches cannot be shown. | They were not written by heddle bench, or more than two are given. | Give one or two files that --json printed or --save wrote.',
  'explore.out':
    'The page cannot be written. | The folder does not exist, or is not writable. | Name a file in a folder that exists.',
  'explore.page': 'A part of the page is missing. | The package was copied in part. | Install heddle again.',
  'explore.port':
    'The page cannot be served at this port. | Another program listens there. | Give another port, or 0 for a free one.',
  'explore.subject':
    'There is nothing to show. | The name is not a kernel, graph or plan. | Give one that the hint lists, or --bench with a file.',
  'export.attrs':
    'An attribute of an export is unknown or not a number. | A misspelt name, or a program, which has none. | Give numbers under names that the hint lists.',
  'export.config':
    'A configuration is given to an export that takes none, or has an unsupported setting. | A graph has none, and a model folder determines most settings. | Leave the setting out, or state one that the hint lists.',
  'export.constant':
    'A kernel reads a value as constant that changes in an export. | The value is computed by another step. | Let the graph take it as an input.',
  'export.dims':
    'A dimension of an export is unknown, or a size is missing. | Sizes of weights must be known when C++ is written. | Fix it with --dims.',
  'export.layout':
    'The memory size of a layout with padding is unknown. | Its size has a condition, or the manifest was written by an earlier version. | Write the size with + - * idiv % and shifts, and run heddle gen.',
  'export.matmul':
    'A library matmul has an operand that an export cannot describe. | Its layout is not an order of axes, or axes are not adjacent at every size. | Export another plan, or fix sizes with --dims.',
  'export.model':
    'This program cannot be exported with a model folder. | Only programs of shipped models have one. | Leave --model out, or export one that the hint lists.',
  'export.name': 'Two things get one name in C. | Their names differ only in signs. | Rename one of them.',
  'export.rotation':
    'A longrope model changes its RoPE tables with the length of a text, and a program has one table. | A single program of such a model is exported. | Export the generator: heddle export llama.',
  'export.scales':
    'Scales are given to an export that takes none, or are missing. | They belong to quantised encoders with a model folder. | Add --model and --scales together, or leave --scales out.',
  'export.sizes':
    'The steps of a program depend on its sizes. | Another kernel or step is chosen at another size. | Fix the dimension with --dims.',
  'export.unknown':
    'There is nothing of that name to export. | It is misspelt, or not exported by the specs. | Write a name that the hint lists.',
  'export.write':
    'An export cannot be written. | The folder is not writable, or the disk is full. | Name another folder with --out.',
  'generated.foreign':
    "A generated source is not known to be yours, so it is not compiled. | It came with a clone or a download, was edited, or the user's cache was removed. | Run heddle gen in a project whose specs you trust; heddle check --generated runs an edited source as it is.",
  'gen.check':
    'Generated source is out of date. | Specs, templates or heddle changed after the last heddle gen. | Run heddle gen, and commit the result.',
  'gen.depfile':
    'The dependencies of generated source cannot be written. | The cache of compiler results is off or cannot be written, or a path has a line break. | Unset HEDDLE_KEPT; heddle doctor shows the cache.',
  'init.folder': 'The folder of a new project is not empty. | init writes into new folders only. | Name a new folder.',
  'init.install':
    'npm install failed in a new project. | The registry cannot be reached, or npm is too old. | Run npm install yourself, or use --no-install.',
  'init.name':
    'The folder name is not a valid package name. | Capitals, blanks or signs. | Use lower-case letters, digits and hyphens.',
  'inspect.kernel':
    'There is no kernel of that name. | It is misspelt, or was not generated. | Write one that the hint lists, or run heddle gen.',
  'inspect.passes':
    'There is no plan or kernel of that name. | It is misspelt, or not exported. | Write one that the hint lists.',
  'inspect.shape':
    'A kernel cannot be priced for these sizes. | A dimension is none of the kernel. | Give dimensions that the hint lists.',
  'inspect.stale': 'The specs no longer declare a generated kernel. | It was renamed or removed. | Run heddle gen.',
  'job.damaged':
    'A packed job is not whole. | The archive was cut, or files of its folder were changed or removed. | Unpack the archive again, into an empty folder.',
  'job.result':
    'The result of a job cannot be written. | The folder does not exist, or is not writable. | Start the job in a folder of your own, or name a file: ./job/run ../result.json.',
  'lock.lost':
    'Another process has taken over a lock of the cache. | This one was stopped for long, or clocks differ. | Run it again.',
  'output.file':
    'A file that heddle did not write is in the way. | It is yours, or was edited after heddle wrote it. | Move it away, or name another folder with --out.',
  'output.folder':
    'The output folder belongs to others. | It has files that heddle did not write, or contains the project, its specs or your home. | Name a new or an empty folder with --out; heddle gen --beside writes beside files of others.',
  'output.write':
    'A named output file cannot be written. | Its folder does not exist, or it is a folder or not writable. | Name a file in a folder that exists.',
  'pack.archive':
    'A job cannot be packed into this archive. | Its name ends in something other than .tar.xz and .tar.gz, its folder cannot be written, or xz is missing. | Name a .tar.gz in a folder that exists.',
  'pack.verb':
    'A command cannot be packed. | It is neither a bench of a name, a suite nor a check, or has an option that belongs to reading the result. | Pack bench NAME, bench suite or check, and give other options with --read.',
  'portable.export': 'The portable bundle cannot export. | It contains no sources. | Use the npm package.',
  'portable.frontend': 'The portable bundle cannot compile specs. | It contains no front end. | Use the npm package.',
  'portable.repro': 'The portable bundle cannot write reproductions. | It contains no specs to compile. | Use the npm package.',
  'remote.agent':
    'The file that runs on the other machine is missing here. | The package was not built completely. | Install the package again; in a checkout, npm run build.',
  'remote.busy':
    'The device of another machine is in use. | Another heddle has it; the message says whose. | Wait for it, or name another device with --device.',
  'remote.cache':
    'The cache folder on another machine cannot be written. | The user has no home folder there, or may not write it. | Set HEDDLE_CACHE there to a folder that can be written.',
  'remote.command':
    'The command that reaches another machine does not exist. | There is no ssh client, or the prefix given to --on is misspelt. | Install ssh, or correct the prefix.',
  'remote.device':
    'A device cannot be opened on another machine. | js runs in the process that asks for it. | Name simt or cuda, or leave --on out.',
  'remote.disk':
    'The disk of the cache on another machine is full. | Node, the addon and kernels take about 100 MiB there, tensors up to 4 GiB. | Make room, or set HEDDLE_CACHE there to a folder on another disk.',
  'remote.glibc':
    'The C library of another machine is too old, or not glibc. | Its system is older than the files that are sent, or is built on musl. | Use a newer system with glibc or a container there, or run heddle with an older build of Node.',
  'remote.host':
    'The argument of --on is neither a name nor a command. | It begins with a dash, or a quote is not closed. | Give a name of ~/.ssh/config or a command prefix.',
  'remote.login':
    'Another machine refuses the login. | It does not know the key, or another user name is needed. | Make ssh NAME true work first; name user and key in ~/.ssh/config.',
  'remote.lost':
    'The link to another machine was lost. | The network or the command broke, or the process there was killed. | Run it again: what was sent is still there.',
  'remote.platform':
    'Another machine has another system or processor. | Files for Linux on x86-64 are sent. | Use a machine with Linux on x86-64, or run heddle there.',
  'remote.several':
    'An option belongs to one machine, and several are named. | A baseline, and formats of a suite other than table and json, have one machine. | Run it for each machine.',
  'remote.start':
    'The agent on another machine did not start. | The command gives no shell with an input, or ssh does not reach the machine. | Try the command with sh -c "cat" at its end; docker exec needs -i.',
  'remote.stranger':
    'ssh does not trust the host key of another machine. | The machine is new to this user, was installed again, or is another one. | Compare the key with the machine, then run ssh NAME true and accept it.',
  'repro.case':
    'A kernel has no such case. | The name is misspelt, or belongs to another kernel or storage type. | Copy it from the output of heddle check.',
  'repro.write':
    'A reproduction cannot be written. | The folder is not writable, or the disk is full. | Name another folder with --out.',
  'result.damaged':
    'The result of a job was changed after the job wrote it. | The file was cut while it was copied, or edited. | Copy it again from where the job ran.',
  'result.foreign':
    'A file is not the result of a job. | Another file is named, such as one of --json or --save. | Name the result.json that job/run wrote.',
  'result.newer':
    'The result of a job was written by a newer heddle. | The job was packed by another version. | Update heddle, or pack the job again.',
  'result.verb':
    'The result of a job belongs to another verb. | A check, a bench and a suite have different results. | Read it with the verb of the hint.',
  'search.dims':
    'A shape of a search has a dimension that the program lacks. | It is misspelt, or is one of a graph. | Give dimensions of the program; the hint lists them.',
  'search.graph':
    'A graph cannot be searched. | There is no graph of the name. | Copy it from heddle plan list or from the specs.',
  'search.out':
    'A found plan cannot be written. | The file exists, and a search did not write it or somebody has edited it since. | Name another plan with --plan, or another file with --out.',
  'search.program':
    'An option of a search is for one graph. | The name is that of a program, whose graphs have a plan each. | Leave it out, or search the graphs one by one.',
  'search.record':
    'The file of measured groups cannot be read. | It is another file, or its first line is damaged. | Remove it, or name another with --record.',
  'selftest.exports':
    'A folder of a selftest contains no exports. | No folder below it has a check.json. | Write them with test/peers/make_exports.ts.',
  'selftest.filter':
    'The filter of a selftest is not a regular expression. | Brackets or signs that are not closed. | Escape them, or write a plain part of the name.',
  'selftest.model': 'The model of a selftest is not a model folder. | It has no config.json. | Name a model folder.',
  'selftest.selection': 'A selftest selects nothing. | The filter matches no check. | Checks have names such as the hint shows.',
  'suite.config':
    'A benchmark suite is declared wrongly. | A part is missing, unknown, given twice or of the wrong kind. | Write defineSuite({ subject, plans, shapes, dtypes }); shapes is a list of extents by dimension.',
  'suite.file':
    'A file has no suites that can be run. | It does not exist, throws, imports a missing module, or exports no suite. | Write export default defineSuite({ ... }) in the file that the message names.',
  'suite.history':
    'A history of suites cannot be read or written. | The file is no history, or a merge left marks in it. | Name a file that --save wrote, and remove the line that the message names.',
  'suite.price':
    'A suite has no predicted times. | The cost model covers graphs and kernels, not programs, and takes no device of this machine. | Time the suite on a device: leave --predicted out.',
  'suite.slower':
    'A suite is slower since its newest run. | A change of the sources, the versions or the machine; the message names plan, shape and kernels. | Undo the change, or commit the history, which then is what later runs are compared with.',
  'toolchain.architecture':
    'Kernels are not built for this architecture. | It is older or newer than those that heddle knows. | Use one that the hint lists.',
  'toolchain.cmake':
    'CMake is missing, which builds the CUDA plugin. | It is not installed, or not on PATH. | Install CMake 3.22 or later; the CPU device needs none.',
  'toolchain.cxx':
    'A C++ compiler is missing. | None of $CXX, g++, c++ and clang++ works. | Install a C++17 compiler such as g++.',
  'toolchain.optimise':
    'This is no level of optimisation. | HEDDLE_SIMT_OPTIMISE is none of -O0, -Og and -O1. | Unset it, or give one of them.',
  'toolchain.nvcc':
    'nvcc is missing. | The CUDA toolkit is not installed, or HEDDLE_NVCC names no compiler. | Install it, or use --target simt, which needs no CUDA.',
  'tune.kernel':
    'A kernel cannot be tuned. | It has no choices, or its integers have no stated range. | State facts on the op, or leave it out.',
  'tune.library':
    'A device has no matmul library whose algorithms could be measured. | It is the CPU device, or cuBLASLt is not found. | Run it on a machine with a GPU and cuBLASLt; heddle doctor shows the one in use.',
  'tune.matmuls':
    'There are no matmuls to measure algorithms for. | The plans leave none to the library, or a model, a graph, its dimensions or scales do not combine. | Name a plan that leaves matmuls to the library, and one model or one graph.',
  'tune.plan':
    'A plan of candidates cannot be used. | It was made for other sources, or is damaged. | Run heddle tune --prepare again.',
  'tune.size':
    'The candidates take more space than allowed. | Too many kernels or lengths are tried at once. | Name fewer of them.',
  'watch.specs': 'Specs cannot be watched. | The folder has none. | Run it in the folder of a project.',
})
