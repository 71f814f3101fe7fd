{{/*
What the reconciler may do at the API, in the namespace of the release only: the least that a sync of CoreClients needs,
which test/kubernetes proves against an API server. It reads this list as YAML.
*/}}
{{- define "formgate.reconcilerRules" -}}
- apiGroups: [formgate.dev]
  resources: [coreclients]
  verbs: [list]
- apiGroups: [formgate.dev]
  resources: [coreclients/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
