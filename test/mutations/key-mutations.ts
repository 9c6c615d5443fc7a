// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code of other files.
import type { MutationGroup } from "./mutation.ts";

const restriction = ["test/integration/api/http/merchant-restriction.test.ts"];
const limits = ["test/integration/api/http/key-limits.test.ts"];
const management = ["test/integration/api/merchant/manage-keys.test.ts"];

/** Mutations of what an API key may do. */
export const keyMutations: readonly MutationGroup[] = [
  {
    file: "api/http/auth.ts",
    tests: restriction,
    mutations: [
      {
        name: "a key may call operations of every scope",
        find: "if (!caller.scopes.includes(scope)) return",
        replace: "if (false) return",
        tests: limits,
      },
      {
        name: "a key that is restricted to merchants may act for the whole account",
        find: "if (wholeAccount && caller.onlyMerchants)",
        replace: "if (false)",
      },
      {
        name: "a payment is read without the restriction of the key",
        find: "merchant, onlyMerchants: caller.onlyMerchants };",
        replace: "merchant };",
      },
    ],
  },
  {
    file: "api/http/idempotency.ts",
    tests: restriction,
    mutations: [
      {
        name: "a stored response is replayed to a key that does not reach its merchant",
        find: "if (merchantId !== undefined && caller.onlyMerchants?.includes(merchantId) === false)",
        replace: "if (false)",
      },
    ],
  },
  {
    file: "payments/idempotency-keys.ts",
    tests: restriction,
    mutations: [
      {
        name: "the merchants of an account share their idempotency keys",
        find: 'merchant_id: merchantId ?? ""',
        replace: 'merchant_id: ""',
      },
    ],
  },
  {
    file: "db/queries/payments.ts",
    tests: restriction,
    mutations: [
      {
        name: "a key reads payments of merchants that it does not reach",
        find: "!onlyMerchants || onlyMerchants.includes(row.merchant_id)",
        replace: "true",
      },
    ],
  },
  {
    file: "db/queries/payment-filters.ts",
    tests: restriction,
    mutations: [
      {
        name: "a list has payments of merchants that the key does not reach",
        find: "new Set(onlyMerchants ?? merchantIds)",
        replace: "new Set(merchantIds ?? onlyMerchants)",
      },
    ],
  },
  {
    file: "db/queries/merchants.ts",
    tests: restriction,
    mutations: [
      {
        name: "a key reads and changes merchants that it does not reach",
        find: "onlyMerchants ? owned.and(sql<boolean>`id = any(${onlyMerchants})`) : owned",
        replace: "owned",
      },
      {
        name: "a list has merchants that the key does not reach",
        find: "if (onlyMerchants) matching = matching.where(sql<boolean>`id = any(${onlyMerchants})`);",
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/refunds.ts",
    tests: restriction,
    mutations: [
      {
        name: "a key reads and withdraws refunds of merchants that it does not reach",
        find: 'if (owner.onlyMerchants) query = query.where("r.merchant_id", "in", [...owner.onlyMerchants]);',
        replace: "",
      },
    ],
  },
  {
    file: "payments/merchants/callers.ts",
    tests: ["test/unit/payments/merchants/callers.test.ts"],
    mutations: [
      {
        name: "a key still works at the time at which it expires",
        find: "row.expires_at <= now",
        replace: "row.expires_at < now",
      },
      {
        name: "a former secret works for ever",
        find: "row.previous_until <= now",
        replace: "false",
      },
      {
        name: "a key works from every address",
        find: "if (row.allowed_cidrs && !isInCidrs(address, row.allowed_cidrs))",
        replace: "if (false)",
        tests: limits,
      },
    ],
  },
  {
    file: "runtime/cidrs.ts",
    tests: ["test/unit/runtime/cidrs.test.ts"],
    mutations: [
      {
        name: "an IPv4-mapped address is not compared with IPv4 ranges",
        find: "ipaddr.process(address)",
        replace: "ipaddr.parse(address)",
      },
      { name: "a range contains wider ranges", find: "innerBits >= outerBits && ", replace: "" },
    ],
  },
  {
    file: "payments/merchants/api-keys.ts",
    tests: management,
    mutations: [
      {
        name: "a key creates keys that can do more than itself",
        find: "const excess = caller && findExcess(caller, limits);",
        replace: "const excess = undefined;",
      },
      {
        name: "the secret before the former one keeps working",
        find: "      previous_hash: before.hash,",
        replace: "      previous_hash: before.previous_hash ?? before.hash,",
      },
      {
        name: "a secret that a stolen key got for another key survives the revocation of what it created",
        find: "if (args.caller?.keyId) await insertKeyMaker(db, { maker_id: args.caller.keyId, key_id: row.id });",
        replace: "",
      },
      {
        name: "a key that a stolen key created survives the revocation of what it created",
        find: "if (caller?.keyId) await insertKeyMaker(db, { maker_id: caller.keyId, key_id: row.id });",
        replace: "",
      },
      {
        name: "a key that is being revoked creates another key",
        find: "if (!(await lockManager(db, args))) return revokedMeanwhile();\n    const ids",
        replace: "const ids",
      },
      {
        name: "a key that is being revoked gets a new secret of another key",
        find: "if (!(await lockManager(db, args))) return revokedMeanwhile();\n    const before",
        replace: "const before",
      },
      {
        name: "a second operator's rotation ends the secret that is deployed",
        find: "args.keepsFormer ? refuseToEndFormer(before.previous_until, at) : undefined",
        replace: "undefined as ReturnType<typeof refuseToEndFormer>",
        tests: ["test/integration/ops/admin/key-commands.test.ts"],
      },
      {
        name: "a key that was being created until its family was locked survives the revocation",
        find: "if (run.value.revoked.length === 0 || !args.withCreated)",
        replace: "if (run.value.revoked.length >= 0)",
      },
      {
        name: "a revoked key can be rotated",
        find: 'if (before.revoked_at) return refuse("invalid_state", "the key is revoked");',
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/api-keys.ts",
    tests: management,
    mutations: [
      {
        name: "a key manages keys of other accounts and modes",
        find: "account_id = ${accountId} and mode = ${mode} and scopes",
        replace: "scopes",
      },
      {
        name: "a key whose secret a stolen key got leaves its family by another rotation",
        find: "m join family f on m.maker_id = f.id where ${withCreated}",
        replace:
          "m join api_key k on k.id = m.key_id and (k.previous_until is null or k.previous_until > clock_timestamp()) join family f on m.maker_id = f.id where ${withCreated}",
      },
      {
        name: "a key manages keys with more scopes",
        find: " and scopes <@ ${within.scopes}::text[]",
        replace: "",
      },
      {
        name: "a key manages keys of other merchants",
        find: "within.merchant_ids && sql",
        replace: "null && sql",
      },
      {
        name: "a key manages keys that work from other addresses",
        find: "within.allowed_cidrs &&\n",
        replace: "null &&\n",
      },
      {
        name: "a key manages keys that expire later",
        find: "within.expires_at && sql",
        replace: "null && sql",
      },
      {
        name: "the last use of a key is stored more than once a minute",
        find: " and (k.last_used_at is null or k.last_used_at <= u.at - ${USE_INTERVAL})",
        replace: "",
        tests: limits,
      },
    ],
  },
];
