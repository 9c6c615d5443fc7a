import { readFileSync } from "node:fs";
import solc from "solc";
import { z } from "zod";

/** One compiled contract. `immutables`: where in the deployed code (byte offsets) each immutable's 32 bytes stand. */
export type Compiled = {
  abi: readonly unknown[];
  bytecode: `0x${string}`;
  deployedBytecode: `0x${string}`;
  immutables: Record<string, { start: number; length: number }[]>;
};

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

/** The same bytes on every machine: no metadata hash, and instructions that every network knows. */
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

/** Compiles one Solidity file; gives its contracts by name. Throws with the compiler's words; a warning counts. */
export function compile(file: URL): Record<string, Compiled> {
  const input = {
    language: "Solidity",
    sources: { source: { content: readFileSync(file, "utf8") } },
    settings,
  };
  const output = Output.parse(JSON.parse(solc.compile(JSON.stringify(input))));
  const [first] = output.errors;
  if (first) throw new Error(first.formattedMessage);
  const names = readImmutables(output.sources.source?.ast);
  return Object.fromEntries(
    Object.entries(output.contracts.source ?? {}).map(([name, { abi, evm }]) => {
      const spots = Object.entries(evm.deployedBytecode.immutableReferences);
      const immutables = Object.fromEntries(spots.map(([id, places]) => [names.get(id) ?? id, places]));
      const compiled = { bytecode: evm.bytecode.object, deployedBytecode: evm.deployedBytecode.object, immutables };
      return [name, { abi, ...compiled }];
    }),
  );
}

/** Names of state variables by the compiler's node numbers. */
function readImmutables(ast: {
  nodes?: { nodes?: { id: number; name: string; mutability?: string }[] }[];
}): Map<string, string> {
  const nodes = (ast.nodes ?? []).flatMap((contract) => contract.nodes ?? []);
  return new Map(
    nodes.filter(({ mutability }) => mutability === "immutable").map(({ id, name }) => [String(id), name]),
  );
}
