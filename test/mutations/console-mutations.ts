import type { MutationGroup } from "./mutation.ts";

const actions = ["test/integration/ops/console/actions.test.ts"];
const jobs = ["test/integration/ops/console/jobs.test.ts"];

/** Mutations of what operators may do on the console. */
export const consoleMutations: readonly MutationGroup[] = [
  {
    file: "ops/console/forms.ts",
    tests: actions,
    mutations: [
      {
        name: "a form needs no token of its session",
        find: "return isOwn && !isFromElsewhere(request.headers)",
        replace: "return !isFromElsewhere(request.headers)",
      },
      {
        name: "a form of another site is accepted",
        find: "return isOwn && !isFromElsewhere(request.headers)",
        replace: "return isOwn",
      },
    ],
  },
  {
    file: "ops/console/action-routes.ts",
    tests: actions,
    mutations: [
      {
        name: "a viewer may request actions",
        find: '    if (!isActionName(action)) return sendNoAction(request, reply);\n    if (!includesRole(operator.role, "operator"))',
        replace: "    if (!isActionName(action)) return sendNoAction(request, reply);\n    if (false)",
      },
      {
        name: "a form that is sent again with other input shows the end of the first request",
        find: "else if (!isDeepStrictEqual(await findRequested(deps, id), { ...requested, args }))",
        replace: "else if (false)",
      },
    ],
  },
  {
    file: "ops/console/job-routes.ts",
    tests: jobs,
    mutations: [
      {
        name: "a viewer may run failed jobs again",
        find: 'if (!includesRole(operator.role, "operator")) return sendViewerRefusal(request, reply);\n    const { job = null',
        replace: "const { job = null",
      },
    ],
  },
  {
    file: "ops/operator-login/same-origin.ts",
    tests: actions,
    mutations: [
      {
        name: "a form of another site is accepted from a browser without Sec-Fetch-Site",
        find: "return !URL.canParse(origin) || new URL(origin).host !== host;",
        replace: "return false;",
      },
    ],
  },
  {
    file: "db/queries/operator-requests.ts",
    tests: actions,
    mutations: [
      {
        name: "two workers carry out the same request",
        find: "    .forUpdate()\n    .skipLocked()\n",
        replace: "",
      },
    ],
  },
  {
    file: "payments/operators/run-requests.ts",
    tests: actions,
    mutations: [
      {
        name: "a worker carries out requests of viewers and disabled operators",
        find: 'if (role === undefined || !includesRole(role, "operator"))',
        replace: "if (false)",
      },
      {
        name: "a worker carries out requests of operators who have not signed in",
        find: "if (!(await hasSignedIn(deps.db, { operator: row.operator, from, to })))",
        replace: "if (false)",
      },
      {
        name: "a worker carries out any number of requests of one operator",
        find: "if ((await countDoneRequests(deps.db, { operator: row.operator, since })) >= MOST_PER_HOUR)",
        replace: "if (false)",
      },
      {
        name: "a worker carries out requests of any age",
        find: "if (isExpired(row, deps.now()))",
        replace: "if (false)",
      },
    ],
  },
  {
    file: "payments/operators/requested-actions.ts",
    tests: actions,
    mutations: [
      {
        name: "a refund is made although what is left has changed since the page was shown",
        find: "if (left !== BigInt(args.left))",
        replace: "if (false)",
      },
    ],
  },
];
