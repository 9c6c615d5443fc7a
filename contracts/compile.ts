import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { z } from "zod";

/** A compiled contract. `immutables` lists the byte ranges of each immutable in the deployed code. */
export type Compiled = {
  abi: readonly unknown[];
  bytecode: `0x${string}`;
  deployedBytecode: `0x${string}`;
  immutables: Record<string, { start: number; length: number }[]>;
};

/** Loads the compiler when something has to be compiled, because that takes half a second. */
const loadCompiler = (): typeof import("solc") => createRequire(import.meta.url)("solc");

const hex = z.string().transform((digits) => `0x${digits}` as const);
const Output = z.object({
  errors: z.array(z.object({ severity: z.string(), formattedMessage: z.string() })).default([]),
  sources: z.record(z.string(), z.object({ ast: z.any() })),
  contracts: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        abi: z.array(z.unknown()),
        evm: z.object({
          bytecode: z.object({ object: hex }),
          deployedBytecode: z.object({
            object: hex,
            immutableReferences: z.record(z.string(), z.array(z.object({ start: z.number(), length: z.number() }))),
          }),
        }),
      }),
    ),
  ),
});

/** Settings for reproducible bytecode that runs on every network: no metadata hash, and an old EVM version. */
const settings = {
  optimizer: { enabled: true, runs: 10_000 },
  evmVersion: "paris",
  metadata: { bytecodeHash: "none", appendCBOR: false },
  outputSelection: {
    "*": {
      "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object", "evm.deployedBytecode.immutableReferences"],
      "": ["ast"],
    },
  },
};

/** Compiles one Solidity file and returns its contracts by name. Throws the compiler's first error or warning. */
export function compile(file: URL): Record<string, Compiled> {
  const input = {
    language: "Solidity",
    sources: { source: { content: readFileSync(file, "utf8") } },
    settings,
  };
  const output = Output.parse(JSON.parse(loadCompiler().compile(JSON.stringify(input))));
  const [first] = output.errors;
  if (first) throw new Error(first.formattedMessage);
  const names = readImmutables(output.sources["source"]?.ast);
  return Object.fromEntries(
    Object.entries(output.contracts["source"] ?? {}).map(([name, { abi, evm }]) => {
      const references = Object.entries(evm.deployedBytecode.immutableReferences);
      const immutables = Object.fromEntries(references.map(([id, ranges]) => [names.get(id) ?? id, ranges]));
      const compiled = { bytecode: evm.bytecode.object, deployedBytecode: evm.deployedBytecode.object, immutables };
      return [name, { abi, ...compiled }];
    }),
  );
}

/** Returns the names of immutable state variables by AST node id. */
function readImmutables(ast: {
  nodes?: { nodes?: { id: number; name: string; mutability?: string }[] }[];
}): Map<string, string> {
  const nodes = (ast.nodes ?? []).flatMap((contract) => contract.nodes ?? []);
  return new Map(
    nodes.filter(({ mutability }) => mutability === "immutable").map(({ id, name }) => [String(id), name]),
  );
}
