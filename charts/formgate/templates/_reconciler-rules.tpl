{{/*
Permissions of the reconciler at the Kubernetes API, in the namespace of the release only. test/kubernetes parses this
list as YAML, and checks against an API server that it grants exactly the permissions that a sync of CoreClients needs.
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
